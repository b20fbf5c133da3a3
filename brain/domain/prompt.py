"""The system prompt as text: sections that are delimited, labelled as data, and cannot be broken out of.

A section is stored part by part, one part an entry, so that deleting one source (a wrap-up, say) removes its
text alone. Every part is a complete section by itself; `assemble` puts the parts of one section back under
one pair of wrapper lines. What comes out depends on nothing but the parts, so a prompt that is frozen stays
the same bytes whatever the code looks like next month.
"""

from __future__ import annotations

import html
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from uuid import UUID

CLOSE = "</section>"
_ENTRY = re.compile(
    r'^<entry label="(?P<label>[^"<>]*)">\n(?P<body>.*?)^</entry>$|^\((?P<removed>removed by you(?: on [^()\n]+)?)\)$',
    re.MULTILINE | re.DOTALL,
)
MONTHS = (  # in the one language of the prompt, whatever the locale of the process
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


async def silent(_: str) -> None:
    """The default of `SectionRequest.notice`: nobody is listening."""


@dataclass(frozen=True)
class SectionRequest:
    """What a section may look at when a session's prompt is frozen.

    `text` is the message that starts the session. `continues` is the session it carries on, if any. `already` are
    sources whose text the model has before it anyway: they are not recalled again.
    `notice` tells the waiting person, in one sentence, what a slow section is waiting for.
    """

    tenant_id: UUID
    customer_id: UUID
    session_id: UUID
    continues: UUID | None = None
    text: str = ""
    notice: Callable[[str], Awaitable[None]] = silent
    already: frozenset[UUID] = frozenset()


@dataclass(frozen=True)
class Entry:
    """One piece of data and where it came from: deleting (`source_kind`, `source_id`) removes its copies."""

    label: str
    body: str
    source_kind: str
    source_id: UUID | None


@dataclass(frozen=True)
class Section:
    """A part of the system prompt. `verbatim` is for our own instructions: no wrapper, no escaping."""

    name: str
    label: str
    entries: tuple[Entry, ...]
    verbatim: bool = False


@dataclass(frozen=True)
class Told:
    """An entry of a section as a person reads it: without wrapper lines and entities. Of a removed one, that line."""

    label: str
    body: str
    removed: bool = False


@dataclass(frozen=True)
class Part:
    """A stored part. `text` is None when its source was removed, on the day `removed_on`."""

    name: str
    text: str | None
    removed_on: date | None = None


@dataclass(frozen=True)
class RenderedPart:
    """A part about to be stored."""

    name: str
    text: str
    source_kind: str
    source_id: UUID | None


def escape(text: str) -> str:
    """The text with the three characters that could open or close anything written as entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_label(text: str) -> str:
    """A label on one line, safe between double quotes."""
    return escape(" ".join(text.split())).replace('"', "&quot;")


def parts(section: Section) -> tuple[RenderedPart, ...]:
    """The section's entries that say anything, each as a part of its own."""
    return tuple(
        RenderedPart(section.name, _part_text(section, entry), entry.source_kind, entry.source_id)
        for entry in section.entries
        if entry.body.strip()
    )


def render(section: Section) -> str:
    """The text of the section as the model sees it; empty when no entry says anything."""
    return "".join(assemble([Part(part.name, part.text) for part in parts(section)]))


def assemble(stored: Sequence[Part]) -> tuple[str, ...]:
    """The section texts of a system prompt, in order, from its parts.

    Parts of one section follow one another and share its wrapper lines. A part that was removed leaves one
    fixed line with the day, so that the log shows that something was known and is gone.
    """
    return tuple(_joined(name, list(group)) for name, group in groupby(stored, key=lambda part: part.name))


def removed_line(day: date | None) -> str:
    """The line that stands where a removed part was."""
    return f"(removed by you on {day_in_words(day)})" if day else "(removed by you)"


def day_in_words(day: date) -> str:
    """A day as the prompt writes it: 3 May 2026."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def told(text: str) -> tuple[Told, ...]:
    """The entries of an assembled section, in order; our own instructions, which have none, as one without label."""
    if not _wrapped(text):
        return (Told("", html.unescape(text)),)
    return tuple(
        Told("", found["removed"], removed=True)
        if found["removed"]
        else Told(html.unescape(found["label"]), html.unescape(found["body"]).strip("\n"))
        for found in _ENTRY.finditer(text)
    )


def _part_text(section: Section, entry: Entry) -> str:
    if section.verbatim:
        return entry.body
    return "\n".join(
        (
            f'<section name="{escape_label(section.name)}" label="{escape_label(section.label)}">',
            f'<entry label="{escape_label(entry.label)}">',
            escape(entry.body).strip("\n"),
            "</entry>",
            CLOSE,
        )
    )


def _joined(name: str, group: list[Part]) -> str:
    texts = [part.text for part in group if part.text is not None]
    if texts and not _wrapped(texts[0]):
        return "\n".join(texts)
    opening = _opening(texts[0]) if texts else f'<section name="{escape_label(name)}">'
    return "\n".join((opening, *(_inside(part) for part in group), CLOSE))


def _wrapped(text: str) -> bool:
    return text.startswith("<section ") and text.endswith("\n" + CLOSE)


def _opening(text: str) -> str:
    return text.partition("\n")[0]


def _inside(part: Part) -> str:
    if part.text is None:
        return removed_line(part.removed_on)
    return part.text.partition("\n")[2].removesuffix("\n" + CLOSE)
