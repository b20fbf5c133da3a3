"""A customer's documents and what prompts were made of, in their archive and back from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.urls import reverse

from brain import actions, expiry
from brain.domain.documents import KINDS
from brain.memory import queries as memory
from brain.models import Document, DocumentVersion, MemoryEntry, MemoryVersion, PromptPart
from memberintel.privacy.archive import Archive, of_model
from memberintel.privacy.participants import Left
from memberintel.privacy.rows import NOT_READABLE_TEXT, Renamer
from memberintel.vault.errors import Damaged

HIDDEN: Final = {"memory_entries": ("vector", "embedder")}  # made anew from the text
SHARED: Final = (
    "sites",
    "metric_snapshots",
    "heartbeats",
)  # the tenant's, in the archive of each of its customers


def export(archive: Archive) -> None:
    """SOUL and BIBLE with everything they once said."""
    for kind in KINDS:
        archive.text(f"brain/{kind.upper()}.md", _document(kind))
    archive.text("brain/MEMORY.md", _memory())


def left_from_session(session: UUID) -> list[Left]:
    """What was kept in MEMORY from a session outlives it, unless it is deleted too."""
    return [
        Left("Kept in MEMORY", entry.text, entry.id, reverse("memory-delete", args=[entry.id]))
        for entry in memory.from_session(session)
    ]


def past(kind: str, before: datetime) -> dict[str, int]:
    """How much of MEMORY, and of what it and the documents said before, is too old."""
    return expiry.past(before) if kind == "memory" else {}


def purge(kind: str, before: datetime) -> Iterator[dict[str, int]]:
    """Delete it, in batches."""
    if kind == "memory":
        yield from expiry.purge(before)


def _memory() -> Iterator[str]:
    yield "# MEMORY\n"
    for row in of_model(MemoryEntry.objects.all):
        said = f"{_opened(row, 'text')}\n\nWhy: {_opened(row, 'reason')}"
        yield f"\n## {row.created_at:%Y-%m-%d %H:%M} UTC, by {row.source}\n\n{said}\n"
        for old in of_model(partial(MemoryVersion.objects.filter, entry_id=row.id)):
            yield f"\nBefore, until {old.replaced_at:%Y-%m-%d %H:%M} UTC: {_opened(old, 'text')}\n"


def _document(kind: str) -> Iterator[str]:
    for row in of_model(lambda: Document.objects.filter(kind=kind)):
        yield f"# {kind.upper()}, version {row.version}\n\n{_opened(row, 'text')}\n"
    for old in of_model(lambda: DocumentVersion.objects.filter(kind=kind)):
        if old.redacted_on:
            said = f"(taken out by you on {old.redacted_on})"
        else:
            said = f"Why: {_opened(old, 'reason')}\n\n{_opened(old, 'text')}"
        yield f"\n## Version {old.version}, {old.at:%Y-%m-%d %H:%M} UTC, by {old.author}\n\n{said}\n"


def _opened(row: Any, name: str) -> str:
    try:
        return str(getattr(row, name))
    except Damaged:
        return NOT_READABLE_TEXT


def restored(row: object, renamer: Renamer) -> None:
    """A prompt's text has a digest of its own for each customer: made anew, and known as the new name of the old."""
    if isinstance(row, PromptPart):
        renamer.words[row.digest] = row.digest = actions.digest_anew(row)
