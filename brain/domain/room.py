"""How much room a section of the prompt has, and what gives way when it is not enough. Pure.

Entries give way whole, and the section says so in a line of its own: of the notes of conversations the oldest first,
of everything else the last, since what was looked up stands in the order of its nearness. A document is one entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brain.domain.prompt import Entry, Section
from memberintel.lib import tokens

OLDEST_FIRST = frozenset({"wrap_ups"})
SOURCE = "room"
LABEL = "Left out for want of room"


def fitted(section: Section, budget: int | None) -> Section:
    """The section within `budget` tokens of text, counted as they were written; as it is without a budget.

    Applied to its own result it changes nothing.
    """
    if budget is None or section.verbatim:
        return section
    oldest_first = section.name in OLDEST_FIRST
    kept = list(section.entries)
    sizes = [_size(entry) for entry in kept]
    while kept and sum(sizes) > budget:
        gone = 0 if oldest_first else len(kept) - 1
        del kept[gone], sizes[gone]
    if len(kept) == len(section.entries):
        return section
    line = Entry(LABEL, _told(section.entries, len(kept), budget, oldest_first), SOURCE, None)
    return replace(section, entries=(line, *kept) if oldest_first else (*kept, line))


def _size(entry: Entry) -> int:
    return 0 if entry.source_kind == SOURCE else tokens.count(entry.body)


def _told(entries: Sequence[Entry], kept: int, budget: int, oldest_first: bool) -> str:
    if len(entries) == 1:
        return f"All of it: it has {_size(entries[0]):,} tokens, and {budget:,} fit here."
    which = "the oldest" if oldest_first else "the last"
    return (
        f"{len(entries) - kept} of {len(entries)}, {which}: together they have more than {budget:,} tokens."
    )
