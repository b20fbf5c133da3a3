"""Reading MEMORY, in the current scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from brain import signals
from brain.domain.documents import Author
from brain.domain.memory import Memory, MemoryText, Thing, Vector
from brain.models import MemoryEntry, MemoryVersion, PromptPart
from memberintel.tenancy.context import current_tenant_id
from memberintel.tenancy.models import Tenant
from memberintel.vault.errors import Damaged

SOURCE = "memory"


@dataclass(frozen=True)
class Known:
    """Everything that can be recalled, and how many entries cannot be opened."""

    things: tuple[Thing[Memory], ...]
    damaged: int


def cap() -> int:
    """How many entries the tenant's tier has room for."""
    return Tenant.objects.select_related("tier").get(id=current_tenant_id()).tier.memory_cap


def count() -> int:
    """How many entries there are."""
    return MemoryEntry.objects.count()


def memories() -> list[Memory]:
    """All entries, newest first. At most a few hundred: the cap of the dearest tier, or what a downgrade left."""
    return [opened(row) for row in MemoryEntry.objects.defer("vector").order_by("-id")]


def memory(entry: UUID) -> Memory | None:
    """The entry, or None."""
    row = MemoryEntry.objects.filter(id=entry).defer("vector").first()
    return opened(row) if row else None


def from_session(session: UUID) -> list[Memory]:
    """The entries that came from a session, oldest first."""
    rows = MemoryEntry.objects.filter(session_id=session).defer("vector").order_by("id")
    return [opened(row) for row in rows]


def before(entry: UUID) -> list[MemoryText]:
    """What the entry said before, newest first. CannotOpen if one is damaged."""
    rows = MemoryVersion.objects.filter(entry_id=entry).order_by("-version")
    return [
        MemoryText(row.version, row.text, row.reason, cast(Author, row.source), row.at, row.replaced_at)
        for row in rows
    ]


def known() -> Known:
    """The entries with their vectors, oldest first. Raises CannotOpen when the customer's key is missing."""
    found = [thing(row) for row in MemoryEntry.objects.order_by("id")]
    things = tuple(each for each in found if each is not None)
    return Known(things, len(found) - len(things))


def thing(row: MemoryEntry) -> Thing[Memory] | None:
    """The entry as something to compare with; None when it is damaged. A damaged vector alone is done without."""
    entry = opened(row)
    if not entry.readable:
        return None
    try:
        values = row.vector
    except Damaged:
        values = None
    return Thing(entry, entry.text, Vector(values, row.embedder) if values else None)


def before_model(session: UUID) -> list[PromptPart]:
    """The parts that a session's model has before it: of its prompt, and of what was recalled for its messages."""
    asked = signals.parts_before_model.send(sender=None, session=session)
    digests = {digest for _, given in asked for digest in given or ()}
    return list(PromptPart.objects.filter(digest__in=digests, text__isnull=False)) if digests else []


def opened(row: MemoryEntry) -> Memory:
    """The row as a value. A missing key raises; a damaged value makes it unreadable."""
    try:
        texts, readable = (row.text, row.reason, tuple(row.changes)), True
    except Damaged:
        texts, readable = ("", "", ()), False
    return Memory(
        row.id,
        row.version,
        *texts,
        source=cast(Author, row.source),
        session_id=row.session_id,
        message_seq=row.message_seq,
        created_at=row.created_at,
        updated_at=row.updated_at,
        readable=readable,
    )
