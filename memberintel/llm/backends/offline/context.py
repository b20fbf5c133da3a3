"""Reading back the sections of an assembled prompt."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from memberintel.llm.types import Prompt

_SECTION = re.compile(r'<section name="([^"]*)" label="([^"]*)">\n(.*?)\n?</section>', re.DOTALL)
_ENTRY = re.compile(r'<entry label="([^"]*)">\n(.*?)\n?</entry>', re.DOTALL)
# How the projection marks other enclosed data in a message (summaries, what tools did).
_ENCLOSED = re.compile(r"<(section|summary|memory|tools)\b[^>]*>\n.*?\n?</\1>", re.DOTALL)
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
        _section(*found.groups())
        for text in texts
        for found in _SECTION.finditer(text)
        if found.group(2) != REMOVED_LABEL
    ]


def _section(name: str, label: str, body: str) -> Section:
    entries = tuple(
        (html.unescape(entry.group(1)), html.unescape(entry.group(2))) for entry in _ENTRY.finditer(body)
    )
    return Section(name, html.unescape(_ENTRY.sub("", body)).strip(), entries)


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
    return _ENCLOSED.sub("", text).strip()


def last_question(prompt: Prompt) -> str:
    """The newest message of the customer that has words in it, or an empty text."""
    for message in reversed(prompt.messages):
        if message.role == "user" and (text := said(message.text)):
            return text
    return ""
