"""Keeping, changing and deleting entries of MEMORY. The embedder is asked before the transaction begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from brain import actions as parts
from brain import embedding, tasks
from brain.domain.documents import Author
from brain.domain.memory import (
    Changed,
    Empty,
    Full,
    Known,
    Memory,
    NotFound,
    NotKept,
    Similar,
    Thing,
    TooLong,
    Vector,
    echoes,
    nearest,
    normal,
)
from brain.domain.prompt import told
from brain.domain.tools import ToolContext, ToolError
from brain.memory import queries
from brain.models import MemoryEntry, MemoryVersion
from memberintel.lib import clock
from memberintel.lib.sanitise import Refused, sanitise
from memberintel.lib.text import clean
from memberintel.tenancy.context import Scope, current_customer_id, current_scope
from memberintel.tenancy.locks import one_at_a_time
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import Damaged

SHOWN_SIMILAR = 3


@dataclass(frozen=True)
class Origin:
    """The message an entry came from."""

    session: UUID
    seq: int


@dataclass(frozen=True)
class New:
    """What is to be kept, and why; `changes` are what cleaning did to it."""

    text: str
    reason: str
    by: Author
    origin: Origin | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What whoever writes has decided: which entry goes, or that similar ones both stay. `base_version` is that of
    the entry as they saw it."""

    replace: UUID | None = None
    keep_both: bool = False
    base_version: int | None = None


async def remember(new: New, who: Scope, choice: Choice | None = None) -> Memory:
    """Keep an entry, or put it in the place of another (whose text is kept as a version).

    Raises NotKept: Empty, TooLong, NotFound, Changed, Known (an equal text is not kept twice), Similar (unless
    decided), Full (at the cap, unless one is replaced). Without an embedder it is kept all the same, and found by
    its words until there is one.
    """
    new = _fit(new)
    vector = await embedding.vector(new.text, who)
    return await unit(who, keep, new, vector, choice or Choice())


def change(entry: UUID, new: New, *, base_version: int) -> Memory:
    """Put a text in the place of an entry's, inside a transaction, where no embedder can be asked: it has its vector
    soon after. Raises as `remember`."""
    return keep(_fit(new), None, Choice(replace=entry, base_version=base_version))


def keep(new: New, vector: Vector | None, choice: Choice, now: datetime | None = None) -> Memory:
    """As `remember`, with the vector at hand, in the current scope."""
    with transaction.atomic():
        _one_at_a_time()
        rows = list(MemoryEntry.objects.order_by("id"))
        target = next((row for row in rows if row.id == choice.replace), None)
        if choice.replace and target is None:
            raise NotFound
        if target and choice.base_version not in (None, target.version):
            raise Changed(queries.opened(target))
        if target and (target.text, target.reason) == (new.text, new.reason):
            return queries.opened(target)
        others = [thing for row in rows if row is not target and (thing := queries.thing(row))]
        _refuse_equal(new.text, others)
        if target is None:
            if not choice.keep_both:
                _refuse_similar(new.text, vector, others)
            if len(rows) >= (cap := queries.cap()):
                raise Full([queries.opened(row) for row in rows], cap)
        row = _written(target, new, vector, now or clock.now())
        if vector is None:
            transaction.on_commit(partial(tasks.embed_later, current_scope()), robust=True)
        return queries.opened(row)


def delete(entry: UUID, *, older_than: datetime | None = None) -> None:
    """Delete an entry with its versions, its vector, and its text in every prompt it stood in. NotFound, also for one
    that is not `older_than`."""
    with transaction.atomic():
        _one_at_a_time()
        row = MemoryEntry.objects.filter(id=entry).first()
        if row is None or (older_than and row.updated_at >= older_than):
            raise NotFound
        MemoryVersion.objects.filter(entry_id=entry).delete()
        row.delete()
        parts.remove_parts(source_kind=queries.SOURCE, source_id=entry)


def _fit(new: New) -> New:
    return replace(new, text=_checked(new.text), reason=clean(new.reason).strip()[: _reason_limit()])


def _checked(text: str) -> str:
    text = clean(text).strip()
    if not normal(text):
        raise Empty
    if len(text) > (limit := settings.MEMORY_LIMIT_CHARACTERS):
        raise TooLong(len(text), limit)
    return text


def _reason_limit() -> int:
    return int(settings.MEMORY_LIMIT_CHARACTERS)


def _one_at_a_time() -> None:
    """The cap and the look for equal texts hold only while nobody else of this customer writes."""
    one_at_a_time(f"memberintel memory {current_customer_id()}")


def _refuse_equal(text: str, others: Sequence[Thing[Memory]]) -> None:
    said = normal(text)
    for other in others:
        if normal(other.text) == said:
            raise Known(other.key)


def _refuse_similar(text: str, vector: Vector | None, others: Sequence[Thing[Memory]]) -> None:
    found = nearest(text, vector, others, embedding.likeness(), most=SHOWN_SIMILAR)
    if found:
        raise Similar([near.key for near in found])


def _written(target: MemoryEntry | None, new: New, vector: Vector | None, now: datetime) -> MemoryEntry:
    row = target or MemoryEntry(created_at=now)
    if target is not None:
        MemoryVersion.objects.create(
            entry_id=target.id,
            version=target.version,
            text=target.text,
            reason=target.reason,
            source=target.source,
            session_id=target.session_id,
            message_seq=target.message_seq,
            at=target.updated_at,
            replaced_at=now,
        )
        row.version += 1
    if new.origin or target is None:  # a person who changes the words does not change where it came from
        row.session_id = new.origin.session if new.origin else None
        row.message_seq = new.origin.seq if new.origin else None
    row.text, row.reason, row.changes, row.source = new.text, new.reason, list(new.changes), new.by
    row.vector, row.embedder = (tuple(vector.values), vector.embedder) if vector else (None, "")
    row.updated_at = now
    row.save()
    return row


# --- for the model -----------------------------------------------------------------------------------------


async def remember_from_tool(
    context: ToolContext, text: str, reason: str, replace: UUID | str | None = None, keep_both: bool = False
) -> str:
    """Keep what the model wants kept of the turn; gives the JSON it reads: `changed`, and the entry's id.

    ToolError: `off_record`, `refused` (it speaks to the machinery), `already_in_context` (it was in front of the
    model anyway), `unknown_entry`, and the codes of NotKept; `similar` and `full` list the ids and texts to choose
    from.
    """
    if context.off_record:
        raise ToolError("off_record", "This conversation is off the record: nothing is kept of it.")
    who = Scope(context.tenant_id, context.customer_id)
    new = _sanitised(text, reason, context)
    target = _id(replace)
    shown = await unit(who, _shown, context.session_id)
    if echoes(new.text, shown):
        raise ToolError(
            "already_in_context",
            "This was in front of you anyway, in these words; it is kept already. Keep only what is new.",
        )
    try:
        kept = await remember(new, who, Choice(target, keep_both))
    except (Similar, Full) as choice:
        raise ToolError(choice.code, _options(choice, choice.entries)) from None
    except Known as known:
        return json.dumps({"id": str(known.entry.id), "kept": "An entry says just this already."})
    except NotKept as refused:
        raise ToolError(refused.code, str(refused)) from None
    except Damaged:
        raise ToolError("unreadable", "That entry cannot be opened, so it was not replaced.") from None
    change = "replaced an entry" if target else "kept a new entry"
    answer: dict[str, object] = {
        "changed": {"document": "memory", "version": kept.version, "change": f"{change}: {kept.text[:120]}"},
        "id": str(kept.id),
    }
    if kept.changes:
        answer["cleaned"] = list(kept.changes)
    return json.dumps(answer, ensure_ascii=False)


def _sanitised(text: str, reason: str, context: ToolContext) -> New:
    limit = settings.MEMORY_LIMIT_CHARACTERS
    if len(text) > limit:  # cut to fit, it would say half of what was meant
        raise ToolError(TooLong.code, str(TooLong(len(text), limit)))
    try:
        kept, why = sanitise(text, limit=limit), sanitise(reason, limit=limit)
    except Refused as refused:
        raise ToolError(
            "refused", f"This was not kept, because {refused.reason}. Keep facts, not rules."
        ) from None
    changes = tuple(dict.fromkeys((*kept.changes, *why.changes)))
    return New(kept.text, why.text, "advisor", Origin(context.session_id, context.message_seq), changes)


def _id(given: UUID | str | None) -> UUID | None:
    if given is None or isinstance(given, UUID):
        return given
    try:
        return UUID(given)
    except ValueError:
        raise ToolError("unknown_entry", "There is no entry with this id.") from None


def _shown(session: UUID) -> list[str]:
    """What the model was given to read, but for MEMORY itself, where equal texts are found anyway."""
    found: list[str] = []
    for part in queries.before_model(session):
        if part.source_kind == queries.SOURCE:
            continue
        try:
            found += [each.body for each in told(part.text or "")]
        except Damaged:
            continue
    return found


def _options(problem: NotKept, entries: Sequence[Memory]) -> str:
    listed = "\n".join(f"- {entry.id}: {entry.text}" for entry in entries if entry.readable)
    return f"{problem}\n{listed}"
