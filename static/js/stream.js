// Follows the server-sent events of one turn and resumes after a break where it left off.
// Not the browser's EventSource: that one gives up for good on the first 502 of a restarting server.
"use strict";

window.memberintelStream = (() => {
  const PATIENCE_MS = 90_000; // without a sign of life (the server comments every 15 s) for so long: start over
  const STALE_MS = 20_000; // the same, once the device has woken or its network has changed: what is open may be dead

  // Waits; less when the network is back, or the page is looked at again.
  function pause(ms) {
    return new Promise((done) => {
      const over = () => {
        clearTimeout(timer);
        window.removeEventListener("online", over);
        document.removeEventListener("visibilitychange", seen);
        done();
      };
      const seen = () => document.visibilityState === "visible" && over();
      const timer = setTimeout(over, ms);
      window.addEventListener("online", over);
      document.addEventListener("visibilitychange", seen);
    });
  }

  // Splits a byte stream into events {id, event, data}; calls `sign` on every chunk.
  async function* eventsOf(body, sign) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      sign();
      rest = (rest + value).replaceAll("\r\n", "\n");
      let end;
      while ((end = rest.indexOf("\n\n")) >= 0) {
        const event = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (event) yield event;
      }
    }
  }

  function parse(block) {
    const event = { id: null, event: "message", data: "" };
    let any = false;
    for (const line of block.split("\n")) {
      if (!line || line.startsWith(":")) continue;
      const at = line.indexOf(":");
      const name = at < 0 ? line : line.slice(0, at);
      const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
      if (name === "data") event.data += (event.data ? "\n" : "") + value;
      else if (name === "id" || name === "event") event[name] = value;
      any = true;
    }
    return any ? event : null;
  }

  // Calls handlers[event](data) for each event until `done` or `error` came; `on.lost()` and `on.back()` tell of
  // breaks. Resolves "ended" after the last event, "gone" if the server no longer holds the stream.
  async function follow(url, handlers, on, signal) {
    let last = null;
    let misses = 0;
    for (;;) {
      const attempt = new AbortController();
      const stop = () => attempt.abort();
      signal?.addEventListener("abort", stop);
      let timer = setTimeout(stop, PATIENCE_MS);
      let heard = Date.now();
      const sign = () => {
        clearTimeout(timer);
        timer = setTimeout(stop, PATIENCE_MS);
        heard = Date.now();
      };
      // Timers stand still while a device sleeps; a connection that died meanwhile says nothing of it.
      const wake = () => document.visibilityState === "visible" && Date.now() - heard > STALE_MS && stop();
      window.addEventListener("offline", stop);
      window.addEventListener("online", wake);
      document.addEventListener("visibilitychange", wake);
      try {
        const headers = { Accept: "text/event-stream" };
        if (last !== null) headers["Last-Event-ID"] = last;
        const answer = await fetch(url, { headers, signal: attempt.signal, cache: "no-store" });
        if ([401, 403, 404, 410].includes(answer.status)) return "gone";
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        if (misses) on.back();
        misses = 0;
        for await (const event of eventsOf(answer.body, sign)) {
          if (event.id !== null) last = event.id;
          if (event.event === "reconnect") break;
          handlers[event.event]?.(event.data ? JSON.parse(event.data) : {});
          if (event.event === "done" || event.event === "error") return "ended";
        }
      } catch (error) {
        if (signal?.aborted) return "left";
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        window.removeEventListener("offline", stop);
        window.removeEventListener("online", wake);
        document.removeEventListener("visibilitychange", wake);
        attempt.abort();
      }
      misses = navigator.onLine ? misses + 1 : 1; // without a network there is nothing to give up on
      on.lost(misses);
      if (misses > 20) return "gone";
      await pause(Math.min(10_000, 250 * 2 ** Math.min(misses, 6)) * (0.5 + Math.random() / 2));
    }
  }

  return { follow, pause };
})();
