// Tells the server that a page of the product is open, and says goodbye when it goes.
// A goodbye closes the conversation after a few minutes unless another page has spoken up by then.
"use strict";

(() => {
  const csrf = () => document.body.dataset.csrf;
  const known = document.body.dataset; // openSession: the conversation this page would say goodbye to

  function remember(session) {
    if (session) known.openSession = session;
    else delete known.openSession;
  }

  async function announce() {
    const before = known.openSession;
    try {
      const answer = await fetch("/api/v1/presence/", {
        method: "POST",
        headers: { "X-CSRFToken": csrf(), "Content-Type": "application/json" },
        body: "{}",
      });
      if (!answer.ok) return;
      const { session } = await answer.json();
      if (known.openSession === before) remember(session); // else one was begun while this was under way
    } catch {
      // offline; the next page says it
    }
  }

  window.addEventListener("pageshow", announce);

  // Another tab of the same person said goodbye; this one is still here.
  window.addEventListener("storage", (event) => {
    if (event.key === "memberintel:left") setTimeout(announce, 1000);
  });

  document.addEventListener("memberintel:session", (event) => {
    remember(event.detail);
  });

  window.addEventListener("pagehide", () => {
    if (!known.openSession) return;
    const form = new FormData();
    form.append("csrfmiddlewaretoken", csrf());
    navigator.sendBeacon(`/api/v1/sessions/${known.openSession}/leaving/`, form);
    try {
      localStorage.setItem("memberintel:left", String(Date.now()));
    } catch {
      // storage is off; the other tab's next page says it
    }
  });

  // The account menu closes when the focus or a click goes elsewhere.
  const menu = document.querySelector("details.account");
  if (menu) {
    const closeOutside = (event) => {
      if (menu.open && !menu.contains(event.target)) menu.open = false;
    };
    document.addEventListener("click", closeOutside);
    document.addEventListener("focusin", closeOutside);
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
})();
