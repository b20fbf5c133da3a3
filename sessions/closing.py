"""The one close of a session. Whoever wins the conditional update closes it; everybody else sees it closed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from memberintel.lib import analytics
from memberintel.tenancy.context import Scope, scope
from sessions import erasure, log
from sessions.domain import events as kinds
from sessions.log import Closed
from sessions.models import CloseReason, EraseReason
from sessions.signals import session_closed

logger = logging.getLogger(__name__)

Due = tuple[UUID, UUID, UUID, CloseReason]
"""A session to close: its id, tenant, customer, and why."""

GRACE = {
    CloseReason.IDLE: lambda: timedelta(seconds=settings.IDLE_SECONDS),
    CloseReason.STREAM_CLOSED: lambda: timedelta(seconds=settings.LEAVING_GRACE_SECONDS),
}


def close(session: UUID, *, reason: CloseReason, by: str, now: datetime, wait: bool = True) -> bool:
    """Close the session if `reason` holds at `now`; True for the one caller who did.

    `idle` needs two hours of silence and no running turn, `stream_closed` a goodbye that has stood for the
    grace, `ended` nothing: it takes the lease of a turn that still runs, so stop that turn first. What is
    owed for the session is recorded in the same transaction by the receivers of `session_closed`. Of a session off
    the record the events are erased in it too. Without `wait` a crash of the database may undo the close, whole.
    """
    grace = GRACE.get(reason)
    with transaction.atomic():
        draft = kinds.session_closed(reason=reason.value, by=by)
        before = now - grace() if grace else None
        closed = log.append_close(session, draft, reason=reason.value, at=now, before=before, wait=wait)
        if closed is None:
            return False
        session_closed.send(sender=None, session=closed, now=now)
        if closed.off_record:
            erasure.erase(session, EraseReason.OFF_RECORD)
        transaction.on_commit(lambda: _report(closed))
    return True


def close_due(due: Iterable[Due], *, now: datetime) -> int:
    """Close those whose reason still holds, each in its own scope and transaction; how many there were.

    One that cannot be closed keeps none of the others open: the next sweep comes back to it, and to one whose close a
    crash of the database has undone. So none of them waits for the disk.
    """
    closed = 0
    for session, tenant, customer, reason in due:
        try:
            with scope(Scope(tenant, customer)):
                closed += close(session, reason=reason, by="clock", now=now, wait=False)
        except Exception as error:
            logger.warning("session %s is not closed yet: %s", session, type(error).__name__)
    return closed


def _report(closed: Closed) -> None:
    analytics.record(
        "session_closed",
        reason=closed.close_reason,
        messages=closed.user_messages,
        minutes=round((closed.ended_at - closed.started_at).total_seconds() / 60),
        wrap_up=closed.substantive and not closed.off_record and closed.close_reason != CloseReason.ERASED,
    )


def due(*, now: datetime, idle: bool, limit: int) -> list[Due]:
    """Sessions to close, across tenants; ids only.

    With `idle` false only the goodbyes, which want a shorter beat.
    """
    left_before = now - GRACE[CloseReason.STREAM_CLOSED]()
    idle_before = now - GRACE[CloseReason.IDLE]() if idle else datetime.min.replace(tzinfo=now.tzinfo)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM app.due_sessions(%s, %s, %s)", [idle_before, left_before, limit])
        return [(session, tenant, who, CloseReason(reason)) for session, tenant, who, reason in cursor]
