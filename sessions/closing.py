"""The one close of a session. Whoever wins the conditional update closes it; everybody else sees it closed."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from memberintel.lib import analytics
from sessions import erasure, log
from sessions.domain import events as kinds
from sessions.models import CloseReason, EraseReason, Session
from sessions.signals import session_closed

GRACE = {
    CloseReason.IDLE: lambda: timedelta(seconds=settings.IDLE_SECONDS),
    CloseReason.STREAM_CLOSED: lambda: timedelta(seconds=settings.LEAVING_GRACE_SECONDS),
}


def close(session: UUID, *, reason: CloseReason, by: str, now: datetime) -> bool:
    """Close the session if `reason` holds at `now`; True for the one caller who did.

    `idle` needs two hours of silence and no running turn, `stream_closed` a goodbye that has stood for the
    grace, `ended` nothing: it takes the lease of a turn that still runs, so stop that turn first. What is
    owed for the session is recorded in the same transaction by the receivers of `session_closed`. Of a session off
    the record the events are erased in it too.
    """
    grace = GRACE.get(reason)
    with transaction.atomic():
        draft = kinds.session_closed(reason=reason.value, by=by)
        before = now - grace() if grace else None
        if log.append_close(session, draft, reason=reason.value, at=now, before=before) is None:
            return False
        row = Session.objects.get(id=session)
        session_closed.send(sender=Session, session=row, now=now)
        if row.off_record:
            erasure.erase(session, EraseReason.OFF_RECORD)
        transaction.on_commit(lambda: _report(row))
    return True


def _report(row: Session) -> None:
    analytics.record(
        "session_closed",
        reason=row.close_reason,
        messages=row.user_messages,
        minutes=round((row.ended_at - row.started_at).total_seconds() / 60),
        wrap_up=row.substantive and not row.off_record and row.close_reason != CloseReason.ERASED,
    )


def due(*, now: datetime, idle: bool, limit: int) -> list[tuple[UUID, UUID, UUID, CloseReason]]:
    """(session, tenant, customer, reason) of sessions to close, across tenants; ids only.

    With `idle` false only the goodbyes, which want a shorter beat.
    """
    left_before = now - GRACE[CloseReason.STREAM_CLOSED]()
    idle_before = now - GRACE[CloseReason.IDLE]() if idle else datetime.min.replace(tzinfo=now.tzinfo)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM app.due_sessions(%s, %s, %s)", [idle_before, left_before, limit])
        return [(session, tenant, who, CloseReason(reason)) for session, tenant, who, reason in cursor]
