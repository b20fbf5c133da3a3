// Shows Markdown while it is still being written. Everything is put into the page as text of elements made here:
// nothing an answer says is ever read as HTML. When the answer has ended, the server's own rendering takes its
// place; until then this need not be perfect, but it must be safe and must not lose a character.
"use strict";

window.memberintelProse = (() => {
  const FENCE = /^ {0,3}(```|~~~)/;
  const INLINE =
    /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|(\*\*|__)(?=\S)([\s\S]*?\S)\3|(?<![\w*])(\*|_)(?=[^\s*_])([\s\S]*?[^\s*_])\5(?![\w*])|~~(?=\S)([\s\S]*?\S)~~|\[([^\]\n]*)\]\((\S+?)\)|\\([!-/:-@[-`{-~])/;

  function make(tag, children = []) {
    const node = document.createElement(tag);
    node.append(...children);
    return node;
  }

  function link(words, address) {
    let goes;
    try {
      goes = ["http:", "https:", "mailto:"].includes(new URL(address).protocol);
    } catch {
      goes = false; // not an absolute address
    }
    if (!goes) return null;
    const node = make("a", inline(words));
    node.href = address;
    node.rel = "nofollow noopener noreferrer";
    node.target = "_blank";
    return node;
  }

  function lines(text) {
    return text.split("\n").flatMap((line, number) => (number ? [make("br"), line] : [line]));
  }

  // The pieces of a paragraph: text, and elements that hold pieces themselves.
  function inline(text) {
    const pieces = [];
    let rest = text;
    for (;;) {
      const found = INLINE.exec(rest);
      if (!found) return [...pieces, ...lines(rest)];
      const [all, , code, , strong, , em, gone, words, address, escaped] = found;
      pieces.push(...lines(rest.slice(0, found.index)));
      if (code !== undefined) pieces.push(make("code", [code]));
      else if (strong !== undefined) pieces.push(make("strong", inline(strong)));
      else if (em !== undefined) pieces.push(make("em", inline(em)));
      else if (gone !== undefined) pieces.push(make("s", inline(gone)));
      else if (escaped !== undefined) pieces.push(escaped);
      else pieces.push(link(words, address) ?? all);
      rest = rest.slice(found.index + all.length);
    }
  }

  const KINDS = [
    ["quote", /^ {0,3}> ?/],
    ["bullet", /^ {0,3}[-*+] +/],
    ["number", /^ {0,3}\d{1,9}[.)] +/],
  ];
  const kindOf = (line) => KINDS.find(([, mark]) => mark.test(line)) ?? ["text", null];

  // One block (no blank line in it outside of a fence) as elements.
  function block(text) {
    const nodes = [];
    let group = null; // {kind, mark, lines}
    const flush = () => {
      if (group) nodes.push(...element(group));
      group = null;
    };
    const all = text.split("\n");
    for (let at = 0; at < all.length; at += 1) {
      const line = all[at];
      const fence = FENCE.exec(line);
      if (fence) {
        flush();
        let end = at + 1;
        while (end < all.length && !all[end].trimStart().startsWith(fence[1])) end += 1;
        nodes.push(make("pre", [make("code", [all.slice(at + 1, end).join("\n")])]));
        at = end;
        continue;
      }
      const heading = /^ {0,3}(#{1,6}) +(.*?)#* *$/.exec(line);
      if (heading || /^ {0,3}([-*_])( *\1){2,} *$/.test(line)) {
        flush();
        nodes.push(heading ? make("h3", inline(heading[2])) : make("hr"));
        continue;
      }
      const [kind, mark] = kindOf(line);
      const goesOn = group && (group.kind === kind || kind === "text");
      if (!goesOn) {
        flush();
        group = { kind, mark, lines: [] };
      }
      group.lines.push(line);
    }
    flush();
    return nodes;
  }

  function element({ kind, mark, lines: all }) {
    const text = all.join("\n");
    if (!text.trim()) return [];
    if (kind === "text") return [make("p", inline(text))];
    if (kind === "quote") {
      const words = all.map((line) => line.replace(mark, "")).join("\n");
      return [make("blockquote", [make("p", inline(words))])];
    }
    const items = [];
    for (const line of all) {
      if (mark.test(line) && !/^ {2,}/.test(line)) items.push(line.replace(mark, ""));
      else items.push(`${items.pop() ?? ""}\n${line.trimStart()}`);
    }
    const points = items.map((item) => make("li", inline(item.trimStart())));
    const list = make(kind === "bullet" ? "ul" : "ol", points);
    if (kind === "number") list.start = parseInt(all[0], 10);
    return [list];
  }

  // The text cut at its blank lines (those inside a fence do not count), and what comes after the last of them.
  function cut(text) {
    const blocks = [];
    let fenced = false;
    let from = 0;
    let at = 0;
    for (const line of text.split("\n")) {
      const next = at + line.length + 1;
      if (FENCE.test(line)) fenced = !fenced;
      else if (!fenced && !line.trim() && next <= text.length) {
        blocks.push(text.slice(from, at));
        from = next;
      }
      at = next;
    }
    return [blocks, text.slice(from)];
  }

  // Writes an answer into `node` as it comes. What is above the last blank line is left alone: it can be
  // selected, and nothing jumps.
  function writer(node) {
    const done = make("div");
    const tail = make("div");
    let rest = "";
    let waiting = false;
    node.append(done, tail);

    function draw() {
      waiting = false;
      const [whole, begun] = cut(rest);
      done.append(...whole.flatMap(block));
      rest = begun;
      tail.replaceChildren(...block(rest));
    }

    return {
      append(more) {
        rest += more;
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(draw);
      },
      replace(text) {
        done.replaceChildren();
        rest = text;
        draw();
      },
    };
  }

  return { writer };
})();
