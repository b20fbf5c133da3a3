"""Owed work as rows: claiming it, holding it, recording what came of it. In the job's own scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import SystemRandom
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, IntegerField, Q, QuerySet, When

from memberintel.lib.ids import uuid7
from wrapups.domain.draft import Draft, Kept
from wrapups.models import ClosingJob, JobKind, JobState, SessionLog

OWED = (JobState.QUEUED, JobState.FAILED)
TRIES = 5  # claims before a queued job counts as failed
DAILY_TRIES = 5  # further ones by the daily backfill
_FIRST_WAIT_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 15 * 60.0
_random = SystemRandom()


class LeaseLost(Exception):
    """Somebody else has claimed the job since, or it is no longer owed; nothing was written."""


@dataclass(frozen=True)
class Claim:
    """A job in our hands until the lease runs out. `attempt` is the fence: only it may record a result."""

    job: UUID
    session: UUID
    attempt: int
    session_started_at: datetime
    session_last_activity_at: datetime


@dataclass(frozen=True)
class Busy:
    """Somebody else holds the job for so many more seconds."""

    seconds: float


@dataclass(frozen=True)
class Provenance:
    """Who wrote a wrap-up: "provider:model", and the version of the prompt."""

    model: str
    prompt_version: str


def claim(job: UUID, now: datetime) -> Claim | Busy | None:
    """Take the job for the length of a lease; None when nothing is owed (any more)."""
    owed = Q(state=JobState.QUEUED) | Q(state=JobState.FAILED, daily_tries__lt=DAILY_TRIES)
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    taken = ClosingJob.objects.filter(owed, free, id=job, kind=JobKind.WRAP_UP).update(
        attempt=F("attempt") + 1,
        lease_until=_lease(now),
        daily_tries=Case(
            When(state=JobState.FAILED, then=F("daily_tries") + 1),
            default=F("daily_tries"),
            output_field=IntegerField(),
        ),
    )
    row = ClosingJob.objects.filter(id=job).first()
    if row is None:
        return None
    if taken:
        return Claim(
            row.id, row.session_id, row.attempt, row.session_started_at, row.session_last_activity_at
        )
    if row.state in OWED and row.lease_until is not None and row.lease_until > now:
        return Busy((row.lease_until - now).total_seconds())
    return None


def renew(held: Claim, now: datetime) -> bool:
    """Hold the job for another lease; False when it is no longer ours."""
    return bool(_ours(held).update(lease_until=_lease(now)))


def record(held: Claim, draft: Draft, by: Provenance, now: datetime) -> None:
    """Store the wrap-up and the job's final state together; LeaseLost when the claim is not the latest."""
    with transaction.atomic():
        if not _ours(held).update(state=JobState.DONE, lease_until=None, next_try_at=None, last_error=""):
            raise LeaseLost(str(held.job))
        if SessionLog.objects.filter(session_id=held.session).exists():
            return  # written before, by a claim whose state was put back by hand
        SessionLog.objects.create(
            session_id=held.session,
            session_started_at=held.session_started_at,
            session_last_activity_at=held.session_last_activity_at,
            created_at=now,
            summary=draft.summary,
            decisions=_stored(draft.decisions),
            open_items=_stored(draft.open_items),
            new_context=_stored(draft.new_context),
            next_session_note=draft.next_session_note,
            model=by.model[:120],
            prompt_version=by.prompt_version,
            word_count=draft.words,
            shortened=draft.shortened,
            dropped=draft.dropped,
        )


def give_up(
    held: Claim, code: str, now: datetime, *, retryable: bool, keep_queued: bool = False
) -> float | None:
    """Record that the attempt failed with `code`; seconds until the next one, or None when there is none.

    `keep_queued` is for what is wrong with the installation (a key that is missing) and not with the job: it
    must not use up the job's tries.
    """
    row = _ours(held).first()
    if row is None:
        return None
    again = row.state == JobState.QUEUED and retryable and row.attempt < TRIES
    wait = backoff(row.attempt) if again else None
    queued = row.state == JobState.QUEUED and (again or keep_queued)
    _ours(held).update(
        state=JobState.QUEUED if queued else JobState.FAILED,
        lease_until=None,
        next_try_at=now + timedelta(seconds=wait) if wait is not None else None,
        last_error=code[:60],
    )
    return wait


def put_back(job: UUID, now: datetime) -> bool:
    """Make a queued or failed job due at once, with new daily tries; False when it is neither, or being worked on.

    `attempt` stays: it fences the claims that were made before.
    """
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    return bool(
        ClosingJob.objects.filter(free, id=job, state__in=OWED).update(
            state=JobState.QUEUED, daily_tries=0, next_try_at=None
        )
    )


def backoff(attempt: int) -> float:
    """Seconds to wait after that attempt: doubling, with jitter so that many failures do not come back at once."""
    longest = min(_FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1), _LONGEST_WAIT_SECONDS)
    return longest * (0.5 + _random.random() / 2)


def _ours(held: Claim) -> QuerySet[ClosingJob]:
    return ClosingJob.objects.filter(id=held.job, attempt=held.attempt, state__in=OWED)


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.WRAP_UP_LEASE_SECONDS)


def _stored(items: Sequence[Kept]) -> list[Mapping[str, object]]:
    return [{"id": str(uuid7()), "text": item.text, "messages": list(item.messages)} for item in items]
