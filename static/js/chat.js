// The conversation page: sends, streams, stops, retries. Everything it shows for good comes from the server's
// own templates; only text that is still being written is put together here, always as text and never as HTML.
"use strict";

(() => {
  const form = document.getElementById("composer");
  const box = document.getElementById("text");
  const conversation = document.getElementById("conversation");
  const alertBox = document.getElementById("alert");
  const statusLine = document.getElementById("status");
  const stopButton = document.getElementById("stop");
  const toNewest = document.getElementById("to-newest");
  const endForm = document.getElementById("end");
  const forgotForm = document.getElementById("forgot");
  const toolWords = JSON.parse(document.getElementById("tool-words").textContent);
  const draftName = `memberintel:draft:${form.dataset.person}`;

  let session = form.dataset.session || null;
  let running = null; // {turn, abort}

  // --- small tools ---------------------------------------------------------------------------------------

  function make(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function newKey() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16)); // pages served without TLS have no randomUUID
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
  }

  async function call(path, body) {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "X-CSRFToken": document.body.dataset.csrf, "Content-Type": "application/json" },
      body: JSON.stringify(body ?? {}),
    });
    let data = {};
    try {
      data = await answer.json();
    } catch {
      // no body, or a proxy's error page
    }
    return { ok: answer.ok, status: answer.status, data };
  }

  const turnPath = (turn, what) => `${form.dataset.sessions}${session}/turns/${turn}/${what}/`;

  function keep(name, value) {
    try {
      if (value) localStorage.setItem(name, value);
      else localStorage.removeItem(name);
    } catch {
      // storage is off: the draft lives as long as the page
    }
  }

  function kept(name) {
    try {
      return localStorage.getItem(name) || "";
    } catch {
      return "";
    }
  }

  // --- following the answer unless the reader scrolled up ----------------------------------------------------

  const page = document.scrollingElement;
  const atEnd = () => page.scrollHeight - page.scrollTop - page.clientHeight < 120;
  let following = true;

  function follow() {
    if (following) page.scrollTop = page.scrollHeight;
    else toNewest.hidden = false;
  }

  window.addEventListener("scroll", () => {
    following = atEnd();
    if (following) toNewest.hidden = true;
  });

  toNewest.querySelector("button").addEventListener("click", () => {
    following = true;
    toNewest.hidden = true;
    follow();
    box.focus();
  });

  // --- telling ---------------------------------------------------------------------------------------------

  function say(words) {
    statusLine.textContent = words;
  }

  function complain(words, actions = []) {
    alertBox.replaceChildren(make("p", "", words));
    if (actions.length) {
      const row = make("div", "actions");
      for (const [label, act] of actions) {
        const button = make("button", "button slim", label);
        button.type = "button";
        button.addEventListener("click", act);
        row.append(button);
      }
      alertBox.append(row);
    }
    alertBox.hidden = false;
  }

  function calm() {
    alertBox.hidden = true;
    alertBox.replaceChildren();
  }

  // --- a turn on the page ------------------------------------------------------------------------------------

  function showMessage(text) {
    document.getElementById("greeting")?.remove();
    const turn = make("div", "turn");
    const said = make("article", "said customer");
    const header = make("header");
    header.append(make("h2", "", "You"));
    said.append(header, make("p", "", text));
    turn.append(said);
    conversation.append(turn);
    return turn;
  }

  // What the advisor does with a tool, as the server's own templates put it.
  function toolLine(data) {
    const place = data.error ? 2 : data.result !== undefined && data.result !== null ? 1 : 0;
    const name = data.name ?? "a tool";
    return toolWords[name]?.[place] ?? `${["Using", "Used", "Tried"][place]} ${name.replaceAll("_", " ")}`;
  }

  // The answer while it is being written.
  function openAnswer(turnNode) {
    const node = make("article", "said advisor");
    const header = make("header");
    header.append(make("h2", "", "Advisor"));
    const notices = make("div");
    const folds = make("div");
    const text = make("div", "prose");
    const prose = window.memberintelProse.writer(text);
    const state = make("p", "state busy", "Thinking…");
    node.append(header, notices, folds, text, state);
    turnNode.append(node);
    let reasoning = null;
    const tools = new Map();
    return {
      node,
      state(words, busy = true) {
        state.textContent = words;
        state.classList.toggle("busy", busy);
        say(words);
      },
      text(more) {
        prose.append(more);
      },
      replace(words, thoughts) {
        prose.replace(words);
        if (reasoning) reasoning.textContent = "";
        if (thoughts) this.reasoning(thoughts);
      },
      reasoning(more) {
        if (!reasoning) {
          const fold = make("details", "fold");
          reasoning = make("p", "prose-text");
          fold.append(make("summary", "", "How I came to this"), reasoning);
          folds.append(fold);
        }
        reasoning.append(more);
      },
      tool(data) {
        const id = data.id ?? data.name;
        let fold = tools.get(id);
        if (!fold) {
          fold = make("details", "fold");
          fold.append(make("summary"));
          if (data.arguments) fold.append(make("pre", "", data.arguments));
          tools.set(id, fold);
          folds.append(fold);
        }
        fold.firstChild.textContent = toolLine(data);
        if (data.result !== undefined && data.result !== null) fold.append(make("pre", "", data.result));
      },
      notice(words) {
        notices.append(make("p", "note", words));
      },
    };
  }

  // The server's own rendering of the turn takes the place of what was put together here.
  async function settle(turnNode, turn, answer) {
    for (let tries = 0; tries < 8; tries += 1) {
      try {
        const got = await fetch(`${form.dataset.blocks}${session}/turns/${turn}/`, { cache: "no-store" });
        if (!got.ok) return false;
        const fragment = document.createElement("template");
        fragment.innerHTML = await got.text();
        const fresh = fragment.content.querySelector(".turn");
        if (!fresh) return false;
        turnNode.replaceWith(fresh);
        return true;
      } catch {
        answer.state("Connection lost; reconnecting…");
        await window.memberintelStream.pause(500 * 2 ** tries);
      }
    }
    return false;
  }

  // --- what the advisor remembers --------------------------------------------------------------------------------

  const memory = document.getElementById("memory");
  const roomy = window.matchMedia("(width >= 75rem)");
  const fitMemory = () => {
    memory.open = roomy.matches;
  };
  fitMemory();
  roomy.addEventListener("change", fitMemory);

  async function remember() {
    if (!session) return;
    try {
      const answer = await fetch(`${form.dataset.blocks}${session}/remembered/`, { cache: "no-store" });
      if (answer.ok) document.getElementById("known").innerHTML = await answer.text();
    } catch {
      // what stands there is as old as the page
    }
  }

  function busy(on) {
    stopButton.hidden = !on;
    conversation.setAttribute("aria-busy", String(on));
  }

  async function stream(turnNode, turn, address) {
    const abort = new AbortController();
    const mine = { turn, abort };
    running = mine;
    busy(true);
    const answer = openAnswer(turnNode);
    let started = false;
    let failure = null;
    let outcome = "";
    follow();
    const handlers = {
      turn(data) {
        if (data.text === undefined) return;
        answer.replace(data.text, data.reasoning ?? ""); // told from what was saved: it stands for all before
        started = Boolean(data.text);
        answer.state(started ? "Writing…" : "Thinking…");
        follow();
      },
      text(data) {
        answer.state("Writing…");
        if (!started) remember(); // by now it is settled what this conversation knows
        started = true;
        answer.text(data.text ?? "");
        follow();
      },
      reasoning(data) {
        answer.reasoning(data.text ?? "");
        follow();
      },
      tool(data) {
        answer.tool(data);
        // What comes next is more text, or another tool: a tool that has ended is followed by a thought.
        const using = (data.result ?? null) === null && !data.error;
        answer.state(using ? `${toolLine(data)}…` : "Thinking…");
        follow();
      },
      notice(data) {
        answer.notice(data.text ?? "");
        follow();
      },
      done(data) {
        outcome = data.outcome ?? "";
      },
      error(data) {
        failure = data;
      },
    };
    const end = await window.memberintelStream.follow(
      address,
      handlers,
      {
        lost: () => answer.state("Connection lost. The answer goes on without you; reconnecting…"),
        back: () => answer.state(started ? "Writing…" : "Thinking…"),
      },
      abort.signal,
    );
    if (running === mine) {
      running = null;
      busy(false);
    }
    if (end === "left") return;
    const settled = await settle(turnNode, turn, answer);
    remember();
    if (!settled) {
      answer.state(failure ? "" : "Reload the page to see the whole answer.", false);
      if (failure) answer.notice(failure.message ?? "The advisor could not answer.");
    }
    say(ending(failure, outcome));
    follow();
  }

  function ending(failure, outcome) {
    if (failure) return failure.code === "interrupted" ? "The answer was interrupted." : "The answer failed.";
    return outcome === "stopped" ? "You stopped the answer." : "The answer is complete.";
  }

  // --- sending -------------------------------------------------------------------------------------------------

  let sending = false;

  async function send({ interrupt = false } = {}) {
    const text = box.value;
    if (!text.trim() || sending) return;
    sending = true;
    calm();
    say("Sending…");
    document.getElementById("send").setAttribute("aria-disabled", "true");
    const key = form.elements.client_key.value;
    const request = { text, client_key: key };
    if (interrupt) request.interrupt = true;
    // Off the record a message belongs to this conversation or nowhere: none may end up where it is kept.
    if (form.dataset.offRecord !== undefined) request.session = session;
    let result;
    try {
      result = await call(form.dataset.messages, request);
    } catch {
      result = null;
    }
    sending = false;
    document.getElementById("send").removeAttribute("aria-disabled");
    if (!result) {
      complain("Your message did not reach the server. It is kept here; check your connection and send it again.");
      return;
    }
    if (!result.ok) {
      refused(result);
      return;
    }
    accepted(text, result.data);
  }

  function accepted(text, data) {
    box.value = "";
    keep(draftName, "");
    form.elements.client_key.value = newKey();
    grow();
    if (session && data.session !== session) {
      // The old conversation was over; the page starts afresh with its successor.
      location.assign("/chat/");
      return;
    }
    adopt(data.session);
    keep("memberintel:said", data.turn);
    following = true;
    const node = conversation.querySelector(`[data-turn="${data.turn}"]`) ?? showMessage(text);
    node.dataset.turn = data.turn;
    if (!(running && running.turn === data.turn)) stream(node, data.turn, data.stream);
  }

  function adopt(id) {
    session = id;
    form.dataset.session = id;
    form.elements.session.value = id;
    endForm.elements.session.value = id;
    endForm.hidden = false;
    forgotForm.elements.session.value = id;
    forgotForm.hidden = false;
    document.dispatchEvent(new CustomEvent("memberintel:session", { detail: id }));
  }

  function refused({ status, data }) {
    say("");
    const words = data.detail || `The server refused the message (error ${status}). It is kept here.`;
    if (status === 409 && (data.turn || running)) {
      complain(words, [["Stop it and send this", () => send({ interrupt: true })]]);
    } else if (data.type === "/problems/session-off-record") {
      complain(words, [["Begin a new one", () => location.assign("/chat/")]]);
    } else if (status === 401 || status === 403) {
      complain(`${words} Your text is kept on this device.`, [["Sign in", () => location.reload()]]);
    } else if (status === 402) {
      complain(words, [["See what is used", () => location.assign("/usage/")]]);
    } else if (status === 422) {
      form.elements.client_key.value = newKey(); // this key was used for another text
      complain(words, [["Send again", () => send()]]);
    } else {
      complain(words);
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const interrupt = event.submitter?.name === "interrupt";
    send({ interrupt });
  });

  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (window.matchMedia("(hover: none)").matches) return; // on a touch keyboard Enter is for lines
    event.preventDefault();
    send();
  });

  function grow() {
    if (CSS.supports("field-sizing", "content")) return;
    box.style.blockSize = "auto";
    box.style.blockSize = `${box.scrollHeight}px`;
  }

  box.addEventListener("input", () => {
    keep(draftName, box.value);
    grow();
  });

  // --- stop and retry --------------------------------------------------------------------------------------------

  async function stop(turn) {
    say("Stopping…");
    stopButton.disabled = true;
    try {
      const result = await call(turnPath(turn, "stop"));
      if (!result.ok && result.status !== 409) complain(result.data.detail || "The answer could not be stopped.");
    } catch {
      complain("The server could not be reached, so the answer was not stopped. Try again.");
    }
    stopButton.disabled = false;
  }

  stopButton.addEventListener("click", () => running && stop(running.turn));

  async function retry(act) {
    const turn = act.elements.turn.value;
    const node = act.closest(".turn");
    calm();
    let result;
    try {
      result = await call(turnPath(turn, "retry"), { attempt: Number(act.elements.attempt.value) });
    } catch {
      complain("The server could not be reached. Try again.");
      return;
    }
    if (!result.ok) {
      complain(result.data.detail || "This answer cannot be tried again.");
      return;
    }
    act.remove();
    following = true;
    stream(node, turn, result.data.stream);
  }

  conversation.addEventListener("submit", (event) => {
    const act = event.target;
    if (act.dataset.act === "retry") {
      event.preventDefault();
      retry(act);
    } else if (act.dataset.act === "stop") {
      event.preventDefault();
      stop(act.elements.turn.value);
    }
  });

  // --- what was said before, and what was forgotten -----------------------------------------------------------------

  conversation.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-earlier]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.getAttribute("aria-disabled")) return;
    link.setAttribute("aria-disabled", "true");
    try {
      const answer = await fetch(link.dataset.earlier, { cache: "no-store" });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const fragment = document.createElement("template");
      fragment.innerHTML = await answer.text();
      const below = page.scrollHeight - page.scrollTop;
      link.parentElement.replaceWith(fragment.content);
      page.scrollTop = page.scrollHeight - below; // what was in view stays there
      say("Earlier messages are above.");
    } catch {
      link.removeAttribute("aria-disabled");
      complain("What was said earlier could not be fetched. Try again.");
    }
  });

  forgotForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const told = document.getElementById("forgot-said");
    try {
      const result = await call(`${form.dataset.sessions}${session}/forgot/`);
      told.textContent = result.ok
        ? "Noted, without a word of what was said. Tell me what I missed, and I go by it."
        : result.data.detail || "That could not be noted.";
    } catch {
      told.textContent = "The server could not be reached. Try again.";
    }
    say(told.textContent);
  });

  // Something was said in another tab of this browser: show it here too, unless something is being written.
  window.addEventListener("storage", (event) => {
    if (event.key === "memberintel:said" && event.newValue && !running && !sending && !box.value) location.reload();
  });

  // --- as the page opens -----------------------------------------------------------------------------------------

  const draft = kept(draftName);
  if (!box.value && draft) box.value = draft;
  grow();
  if (!form.elements.client_key.value) form.elements.client_key.value = newKey();
  if (session) document.dispatchEvent(new CustomEvent("memberintel:session", { detail: session }));

  if (form.dataset.runningTurn) {
    // An answer is being written: follow it from its beginning in place of the part the page came with.
    const turn = form.dataset.runningTurn;
    const node = conversation.querySelector(`[data-turn="${turn}"]`);
    if (node) {
      node.querySelector('[data-state="running"]')?.remove();
      stream(node, turn, form.dataset.runningStream);
    }
  }
  page.scrollTop = page.scrollHeight;

  // A page brought back from the browser's memory may be hours old.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  // Leaving while an answer is written is no error of the connection.
  window.addEventListener("pagehide", () => running?.abort.abort());
})();
