"""A session has closed: what is owed for it becomes a row in the very transaction that closes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django.db import connection, transaction
from django.dispatch import receiver

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope
from sessions.signals import session_closed
from wrapups.handover import actions as handover
from wrapups.models import JobKind, JobState
from wrapups.tasks import nudge


class ClosedSession(Protocol):
    """What is read of the session that has closed."""

    id: UUID
    tenant_id: UUID
    customer_id: UUID
    started_at: datetime
    last_activity_at: datetime
    close_reason: str
    off_record: bool
    substantive: bool
    imported: bool


@receiver(session_closed, dispatch_uid="wrapups.owe_wrap_up")
def owe_wrap_up(sender: object, session: ClosedSession, now: datetime, **kwargs: Any) -> None:
    """Owe wrap-up, journal and mood, or note why there is no wrap-up. Nothing is owed for an erased session."""
    if session.close_reason == "erased":
        return
    state = _state(session)
    kinds = tuple(JobKind) if state == JobState.QUEUED else (JobKind.WRAP_UP,)
    jobs = _owe(session, kinds, state)
    if state == JobState.QUEUED:
        handover.session_closed(session.id, session.started_at)
        scope = Scope(session.tenant_id, session.customer_id)
        transaction.on_commit(partial(nudge, jobs, scope), robust=True)


# One plain statement: the sweep closes hundreds of sessions a second.
_OWE = """
INSERT INTO closing_jobs (id, kind, tenant_id, customer_id, session_id, session_started_at, session_last_activity_at,
                          state, charged, created_at, attempt, daily_tries, last_error)
SELECT job.*, %s, %s, %s, %s, %s, %s, %s, %s, 0, 0, '' FROM unnest(%s::uuid[], %s::text[]) AS job (id, kind)
"""


def _owe(session: ClosedSession, kinds: Sequence[str], state: JobState) -> list[UUID]:
    """The jobs' ids."""
    jobs = [uuid7() for _ in kinds]
    values = (
        session.tenant_id,
        session.customer_id,
        session.id,
        session.started_at,
        session.last_activity_at,
        state,
        not session.imported,
        clock.now(),  # an import closes at times of the past; waiting is counted from today
    )
    with connection.cursor() as cursor:
        cursor.execute(_OWE, [*values, jobs, list(kinds)])
    return jobs


def _state(session: ClosedSession) -> JobState:
    if session.off_record:
        return JobState.OFF_RECORD
    return JobState.QUEUED if session.substantive else JobState.TRIVIAL
