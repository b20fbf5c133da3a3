"""Carries what is due to the external memory, and deletes there what was deleted here. No transaction waits for it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F

from memberintel.lib import clock
from memberintel.tenancy.context import SYSTEM, Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import VaultError
from wrapups.domain.journal import Day, time_range
from wrapups.domain.render import Notes, entry_body
from wrapups.handover import actions, memory
from wrapups.handover.memory import Document, Refused
from wrapups.journal import queries as journal
from wrapups.models import ClosingJob, ExternalDeletion, HandOver, JobState
from wrapups.queries import wrap_up_of

logger = logging.getLogger(__name__)

BATCH: Final = 200
TRIES: Final = 8  # over about a day; then it has failed
_FIRST_WAIT = timedelta(minutes=2)
_LONGEST_WAIT = timedelta(hours=6)
_UNTIL_WRITTEN = timedelta(minutes=5)  # how soon to look again whether the notes are there

State = HandOver.State


@dataclass(frozen=True)
class _Parcel:
    """A row and what is to stand there; None: nothing may."""

    row: UUID
    name: str
    changed: int
    document: Document | None


async def carry() -> int:
    """Everything that is due, once; how many documents were written or deleted."""
    if not settings.SUPERMEMORY_API_KEY:
        return 0
    done = 0
    for row, tenant, customer in await unit(SYSTEM, _due):
        done += await _hand_over(row, Scope(tenant, customer))
    for deletion in await unit(SYSTEM, _deletions):
        done += await _delete(deletion)
    return done


def backoff(tries: int) -> timedelta:
    """How long to wait after so many tries: doubling."""
    doubled: timedelta = _FIRST_WAIT * 2 ** min(tries, 12)
    return min(doubled, _LONGEST_WAIT)


async def _hand_over(row: UUID, scope: Scope) -> int:
    try:
        parcel = await unit(scope, _pack, row)
    except VaultError:
        await unit(scope, _failed, row, "cannot open", False)
        return 0
    if parcel is None:
        return 0
    where = actions.namespace(scope.customer_id or UUID(int=0))
    try:
        if parcel.document is not None:
            await asyncio.to_thread(memory.put, where, parcel.document)
        else:
            await asyncio.to_thread(memory.delete, where, parcel.name)
    except Refused as refused:
        logger.warning("hand-over %s: %s", row, refused.code)
        await unit(scope, _failed, row, refused.code, refused.lasting)
        return 0
    await unit(scope, _handed, parcel)
    return 1


def _pack(row: UUID) -> _Parcel | None:
    """What is to be handed over; None while the notes are still being written, or when nobody agrees any more."""
    found = HandOver.objects.filter(id=row, state=State.PENDING).first()
    if found is None or not actions.agreed():
        return None
    where = journal.zone()
    document = None
    if found.session_id is not None:
        if ClosingJob.objects.filter(session_id=found.session_id, state=JobState.QUEUED).exists():
            _put_off_until_written(row)
            return None
        document = _session(found.document, found.session_id)
    elif found.day is not None:
        (day,) = journal.between(found.day, found.day, where)
        if JobState.QUEUED in journal.unwritten([day]).values():
            _put_off_until_written(row)
            return None
        document = _day(found.document, day)
    return _Parcel(row, found.document, found.changed, document)


def _put_off_until_written(row: UUID) -> None:
    HandOver.objects.filter(id=row).update(next_try_at=clock.now() + _UNTIL_WRITTEN)


def _session(name: str, session: UUID) -> Document | None:
    notes, entry = wrap_up_of(session), journal.entry(session)
    if (notes is None or not notes.readable) and (entry is None or not entry.blob):
        return None
    parts = [entry.blob] if entry is not None and entry.blob else []
    if notes is not None and notes.readable:
        texts = Notes(
            notes.summary,
            [item.text for item in notes.decisions],
            [item.text for item in notes.open_items],
            [item.text for item in notes.new_context],
            notes.next_session_note,
        )
        parts.append(entry_body(texts, by_person=notes.edited_at is not None))
    started = (
        entry.started_at if entry is not None else notes.session_started_at if notes is not None else None
    )
    if started is None:
        return None
    return Document(
        name,
        "\n\n".join(parts),
        started.date().isoformat(),
        {
            "kind": "session",
            "date": started.date().isoformat(),
            **(_felt(Day(started.date(), (entry,))) if entry else {}),
        },
    )


def _day(name: str, day: Day) -> Document | None:
    passages = [entry.blob for entry in day.entries if entry.blob]
    if not passages:
        return None
    return Document(
        name,
        "\n\n".join(passages),
        day.day.isoformat(),
        {"kind": "day", "date": day.day.isoformat(), **_felt(day)},
    )


def _felt(day: Day) -> dict[str, str | list[str]]:
    """Times, moods, energies and themes, as far as they are known."""
    where = journal.zone()
    told: dict[str, str | list[str]] = {
        "times": [time_range(entry, where) for entry in day.entries],
    }
    if day.feelings:
        told["mood"] = [feeling.mood for feeling in day.feelings]
        told["energy"] = [feeling.energy for feeling in day.feelings]
    if day.themes:
        told["themes"] = list(day.themes)
    return told


def _handed(parcel: _Parcel) -> None:
    """Settled, unless it was changed here since it was read. With nothing to stand there the row goes too."""
    rows = HandOver.objects.filter(id=parcel.row, changed=parcel.changed)
    if parcel.document is None:
        rows.delete()
    else:
        rows.update(state=State.DONE, handed_at=clock.now(), last_error="")


def _failed(row: UUID, code: str, lasting: bool) -> None:
    found = HandOver.objects.filter(id=row).first()
    if found is None:
        return
    over = lasting or found.tries + 1 >= TRIES
    HandOver.objects.filter(id=row, changed=found.changed).update(
        state=State.FAILED if over else State.PENDING,
        tries=found.tries + 1,
        next_try_at=clock.now() + backoff(found.tries),
        last_error=code[:60],
    )


async def _delete(deletion: ExternalDeletion) -> int:
    """Deleting is tried for ever: what was promised to go has to go."""
    try:
        await asyncio.to_thread(memory.delete, deletion.namespace, deletion.document)
    except Refused as refused:
        logger.warning("external deletion %s: %s", deletion.id, refused.code)
        await unit(SYSTEM, _put_off, deletion, refused.code)
        return 0
    await unit(SYSTEM, ExternalDeletion.objects.filter(id=deletion.id).delete)
    return 1


def _put_off(deletion: ExternalDeletion, code: str) -> None:
    ExternalDeletion.objects.filter(id=deletion.id).update(
        tries=F("tries") + 1, next_try_at=clock.now() + backoff(deletion.tries), last_error=code[:60]
    )


def _deletions() -> list[ExternalDeletion]:
    return list(ExternalDeletion.objects.filter(next_try_at__lte=clock.now()).order_by("next_try_at")[:BATCH])


def _due() -> list[tuple[UUID, UUID, UUID]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, tenant_id, customer_id FROM app.due_hand_overs(%s, %s)", [BATCH, clock.now()]
        )
        return list(cursor.fetchall())
