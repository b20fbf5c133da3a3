"""What the advisor was told, part by part: as a person reads it, with where each came from. In the current scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from uuid import UUID

from brain import sources
from brain.domain.prompt import told
from brain.domain.sources import Link
from brain.models import PromptPart
from memberintel.vault.errors import Damaged


@dataclass(frozen=True)
class Entry:
    """One thing the advisor was told. `removed_on` when its source was removed since; then `body` is empty.

    `readable` is False when it cannot be opened. `link` is where its source can be read, if it has a page and stands.
    """

    label: str
    body: str
    source_kind: str
    source_id: UUID | None
    link: Link | None = None
    removed_on: date | None = None
    readable: bool = True


@dataclass(frozen=True)
class Section:
    """A section of a prompt or of a recall, by its name."""

    name: str
    entries: tuple[Entry, ...]


def sections(named: Sequence[Sequence[tuple[str, str]]]) -> list[list[Section]]:
    """For each list of (section name, digest), as events hold them, its sections in that order. Three queries or so.

    CannotOpen when the customer's key cannot be had.
    """
    digests = {digest for pairs in named for _, digest in pairs}
    rows = {row.digest: row for row in PromptPart.objects.filter(digest__in=digests)}
    links = sources.links(
        (row.source_kind, row.source_id) for row in rows.values() if row.source_kind in sources.kinds()
    )
    entries = {digest: _entries(row, links) for digest, row in rows.items()}
    return [_sections(pairs, entries) for pairs in named]


def _sections(pairs: Sequence[tuple[str, str]], entries: dict[str, tuple[Entry, ...]]) -> list[Section]:
    return [
        Section(name, tuple(entry for _, digest in group for entry in entries.get(digest, ())))
        for name, group in groupby(pairs, key=lambda pair: pair[0])
    ]


def _entries(row: PromptPart, links: dict[tuple[str, UUID], Link]) -> tuple[Entry, ...]:
    kind, source = row.source_kind, row.source_id
    if row.removed_on is not None:
        return (Entry("", "", kind, source, removed_on=row.removed_on),)
    try:
        text = row.text or ""
    except Damaged:
        return (Entry("", "", kind, source, readable=False),)
    link = links.get((kind, source)) if source else None
    return tuple(Entry(each.label, each.body, kind, source, link) for each in told(text))
