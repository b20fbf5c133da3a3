"""A session has closed: what is owed for it becomes a row in the very transaction that closes it."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django.db import transaction
from django.dispatch import receiver

from memberintel.lib import clock
from memberintel.tenancy.context import Scope
from sessions.signals import session_closed
from wrapups.handover import actions as handover
from wrapups.models import ClosingJob, JobKind, JobState
from wrapups.tasks import nudge


class ClosedSession(Protocol):
    """What is read of the session that has closed."""

    id: UUID
    tenant_id: UUID
    customer_id: UUID
    started_at: datetime
    last_activity_at: datetime
    close_reason: str | None
    off_record: bool
    substantive: bool
    imported: bool


@receiver(session_closed, dispatch_uid="wrapups.owe_wrap_up")
def owe_wrap_up(sender: object, session: ClosedSession, now: datetime, **kwargs: Any) -> None:
    """Owe wrap-up, journal and mood, or note why there is no wrap-up. Nothing is owed for an erased session."""
    if session.close_reason == "erased":
        return
    state = _state(session)
    kinds = JobKind if state == JobState.QUEUED else (JobKind.WRAP_UP,)
    jobs = ClosingJob.objects.bulk_create(_job(session, kind, state) for kind in kinds)
    if state == JobState.QUEUED:
        handover.session_closed(session.id, session.started_at)
        scope = Scope(session.tenant_id, session.customer_id)
        for job in jobs:
            transaction.on_commit(partial(nudge, job.id, scope), robust=True)


def _job(session: ClosedSession, kind: str, state: JobState) -> ClosingJob:
    return ClosingJob(
        tenant_id=session.tenant_id,
        customer_id=session.customer_id,
        session_id=session.id,
        session_started_at=session.started_at,
        session_last_activity_at=session.last_activity_at,
        kind=kind,
        state=state,
        charged=not session.imported,
        created_at=clock.now(),  # an import closes at times of the past; waiting is counted from today
    )


def _state(session: ClosedSession) -> JobState:
    if session.off_record:
        return JobState.OFF_RECORD
    return JobState.QUEUED if session.substantive else JobState.TRIVIAL
