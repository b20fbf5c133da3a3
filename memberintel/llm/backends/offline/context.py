"""Reading back the sections of an assembled prompt."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memberintel.llm.types import Prompt

# No pattern here looks for an end: `_blocks` does, in one pass, however many openings a text has.
_SECTION = re.compile(r'<section name="([^"<>]*)" label="([^"<>]*)">\n')
_ENTRY = re.compile(r'<entry label="([^"<>]*)">\n')
# What the projection encloses in a message beside what was said: recall, summaries, what tools did.
_ENCLOSED = {name: re.compile(rf"<{name}\b[^<>]*>\n") for name in ("section", "summary", "memory", "tools")}
# What stands where a source was deleted: not a thing to quote.
_REMOVED = re.compile(r"^\((?:removed by you\b[^)\n]*|This part was removed\.)\)$", re.MULTILINE)
REMOVED_LABEL = "removed"
DRAFT_ENDING = " (notes not final)"

_HEADINGS = {
    "summary": "summary",
    "decisions": "decisions",
    "open items": "open_items",
    "new context": "new_context",
    "note for next time": "note",
}


@dataclass(frozen=True)
class Section:
    """A section as it was rendered, unescaped. `entries` are its (label, body) pairs, if it has any."""

    name: str
    body: str
    entries: tuple[tuple[str, str], ...] = ()


@dataclass
class Notes:
    """The notes of one earlier session."""

    label: str
    draft: bool = False
    summary: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    open_items: list[str] = field(default_factory=list)
    new_context: list[str] = field(default_factory=list)
    note: list[str] = field(default_factory=list)


def sections(texts: Iterable[str]) -> list[Section]:
    """Every rendered section in `texts`, in order; those whose text was removed are left out."""
    return [
        _section(block.opening[1], block.body)
        for text in texts
        for block in _blocks(text, _SECTION, "</section>")
        if block.opening[2] != REMOVED_LABEL
    ]


def _section(name: str, body: str) -> Section:
    entries = tuple(
        (html.unescape(block.opening[1]), html.unescape(_REMOVED.sub("", block.body)).strip())
        for block in _blocks(body, _ENTRY, "</entry>")
    )
    rest = _REMOVED.sub("", _without(body, _ENTRY, "</entry>"))
    return Section(name, html.unescape(rest).strip(), entries)


@dataclass(frozen=True)
class _Block:
    opening: re.Match[str]
    body: str
    end: int


def _blocks(text: str, opening: re.Pattern[str], closing: str) -> Iterator[_Block]:
    at = 0
    while found := opening.search(text, at):
        end = text.find(closing, found.end())
        if end < 0:
            return
        at = end + len(closing)
        yield _Block(found, text[found.end() : end], at)


def _without(text: str, opening: re.Pattern[str], closing: str) -> str:
    kept, at = [], 0
    for block in _blocks(text, opening, closing):
        kept.append(text[at : block.opening.start()])
        at = block.end
    return "".join((*kept, text[at:]))


def notes(section: Section) -> list[Notes]:
    """The notes in the section `wrap_ups`, in its order: newest last."""
    return [_notes(label, body) for label, body in section.entries]


def _notes(label: str, body: str) -> Notes:
    found = Notes(label.removesuffix(DRAFT_ENDING), draft=label.endswith(DRAFT_ENDING))
    current: list[str] | None = None
    for line in body.split("\n"):
        head, colon, rest = line.partition(":")
        name = _HEADINGS.get(head.strip().lower()) if colon else None
        if name is not None:
            current, line = getattr(found, name), rest
        if current is None or not line.strip():
            continue
        if current and not line.startswith("- ") and name is None:
            current[-1] = f"{current[-1]} {line.strip()}"
        else:
            current.append(line.strip().removeprefix("- ").strip())
    return found


def said(text: str) -> str:
    """What the customer wrote in a message, without the data that was put after it."""
    for name, opening in _ENCLOSED.items():
        text = _without(text, opening, f"</{name}>")
    return text.strip()


def last_question(prompt: Prompt) -> str:
    """The newest message of the customer that has words in it, or an empty text."""
    for message in reversed(prompt.messages):
        if message.role == "user" and (text := said(message.text)):
            return text
    return ""
