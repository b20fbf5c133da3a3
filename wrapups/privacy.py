"""Wrap-ups and journal when a customer takes them along, and when they are destroyed. In the customer's scope."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memberintel.privacy.archive import Archive, of_model
from memberintel.privacy.participants import Told
from memberintel.privacy.rows import NOT_READABLE_TEXT
from memberintel.vault.errors import Damaged
from wrapups import actions, jobs
from wrapups.handover import actions as handover
from wrapups.models import JobKind, JobState, JournalEntry, SessionLog
from wrapups.pooling import choices as pooling

_PAGE = 100

LEFT_OUT: Final = ("pooled_support",)  # ids that mean nothing to the customer, and nothing in another account
HIDDEN: Final = {"closing_jobs": ("lease_until",)}  # of running processes


def export(archive: Archive) -> None:
    """Every wrap-up and every entry of the journal, oldest first."""
    archive.text("wrap-ups.md", _wrap_ups())
    archive.text("journal.md", _journal())


def _wrap_ups() -> Iterator[str]:
    for row in of_model(SessionLog.objects.all):
        yield f"# {row.session_started_at:%Y-%m-%d %H:%M} UTC (conversation {row.session_id})\n\n{_body(row)}\n\n"


_FELT: Final = ("mood", "energy", "reason")


def _journal() -> Iterator[str]:
    for row in of_model(JournalEntry.objects.all):
        try:
            felt = row.feeling or {}
            said = [row.blob, *(f"{name.title()}: {felt[name]}" for name in _FELT if felt.get(name))]
            said.append(f"Themes: {', '.join(felt['themes'])}" if felt.get("themes") else None)
        except Damaged:
            said = [NOT_READABLE_TEXT]
        entry = "\n\n".join(part for part in said if part)
        yield f"# {row.session_started_at:%Y-%m-%d %H:%M} UTC\n\n{entry}\n\n"


def _body(row: SessionLog) -> str:
    try:
        lists = [
            ("Decisions", row.decisions),
            ("Open items", row.open_items),
            ("New context", row.new_context),
        ]
        parts = [row.summary, *(_listed(label, items) for label, items in lists)]
        return "\n\n".join(part for part in (*parts, f"Next time: {row.next_session_note}") if part)
    except Damaged:
        return NOT_READABLE_TEXT


def _listed(label: str, items: list[dict[str, Any]]) -> str:
    return f"{label}:\n\n" + "\n".join(f"* {item['text']}" for item in items) if items else ""


def forget_session(session: UUID) -> dict[str, int]:
    """Delete the session's wrap-up and its place in the journal, and let nothing be written of it any more, also by
    who is at it right now.

    To be called before the session's row is locked: who records a wrap-up locks the job first too.
    """
    with transaction.atomic():
        jobs.forget(session)
        found = list(SessionLog.objects.filter(session_id=session).values_list("id", flat=True))
        for wrap_up in found:
            actions.remove(wrap_up, JobState.DELETED)
        actions.forget_draft(session)
        handed = handover.forget_session(session)  # reads when the session was from what is deleted next
        entries, _ = JournalEntry.objects.filter(session_id=session).delete()
    return {"wrap_ups": len(found), "journal_entries": entries, "hand_overs": handed}


def expire_session(session: UUID) -> None:
    """What was never written of a session never will be, once its words are too old to be kept; the extract that may
    have stood in for it goes with the words."""
    jobs.expire_given_up(session)
    actions.forget_draft(session)


def past(kind: str, before: datetime) -> dict[str, int]:
    """How many wrap-ups and entries of the journal are of sessions last active before then."""
    if kind not in _KEPT:
        return {}
    return {kind: _old(kind, before).count()}


def purge(kind: str, before: datetime) -> Iterator[dict[str, int]]:
    """Delete the customer's wrap-ups, or entries of the journal, of sessions last active before then.

    Each in a transaction of its own, with its state, `expired`: it is never written again. A day or more must have
    passed since.
    """
    if kind not in _KEPT:
        return
    expire = _expire_wrap_up if kind == "wrap_ups" else _expire_entry
    after = UUID(int=0)
    while page := list(_old(kind, before).filter(id__gt=after).values_list("id", "session_id")[:_PAGE]):
        for row, session in page:
            with transaction.atomic():
                count = expire(row, session)
            yield {kind: int(count)}
        after = page[-1][0]


_KEPT: Final[dict[str, type[SessionLog] | type[JournalEntry]]] = {
    "wrap_ups": SessionLog,
    "journal": JournalEntry,
}


def _old(kind: str, before: datetime) -> QuerySet[Any]:
    rows: QuerySet[Any] = _KEPT[kind].objects.all()
    # A session begins before it is last active; by its beginning there is an index.
    return rows.filter(session_started_at__lt=before, session_last_activity_at__lt=before).order_by("id")


def _expire_wrap_up(wrap_up: UUID, session: UUID) -> bool:
    try:
        actions.remove(wrap_up, JobState.EXPIRED)
    except actions.NotFound:  # the customer deleted it a moment ago
        return False
    handover.session_changed(session)
    return True


def _expire_entry(entry: UUID, session: UUID) -> bool:
    jobs.expire(session, JobKind.JOURNAL, JobKind.MOOD)
    handover.session_changed(session)  # reads when the session was from what is deleted next
    return JournalEntry.objects.filter(id=entry).delete()[0] > 0


def told() -> Told:
    """How the account stands to pooling, on the privacy page."""
    return Told("privacy/_pooling.html", {"standing": pooling.standing()})


def erase() -> dict[str, int]:
    """Of a customer whose key is destroyed: what lies in the external memory is owed its deletion."""
    with transaction.atomic():
        return {"hand_overs": handover.forget_customer()}
