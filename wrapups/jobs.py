"""Owed work as rows, whatever its kind: claiming it, holding it, recording what came of it. In the job's own scope.

A worker claims a job for the length of a lease, works without a transaction, and records the result under the
attempt it claimed: a claim made since makes the result void.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import SystemRandom
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, IntegerField, Q, QuerySet, When

from wrapups.models import ClosingJob, JobState

OWED = (JobState.QUEUED, JobState.FAILED)
TRIES = 5  # claims before a queued job counts as failed
DAILY_TRIES = 5  # further ones by the daily backfill
_FIRST_WAIT_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 15 * 60.0
_random = SystemRandom()

Store = Callable[["Claim", datetime], None]
"""Writes the result of a claim; called in the transaction that makes the job done."""


class LeaseLost(Exception):
    """Somebody else has claimed the job since, or it is no longer owed; nothing was written."""


@dataclass(frozen=True)
class Claim:
    """A job in our hands until the lease runs out. `attempt` is the fence: only it may record a result."""

    job: UUID
    kind: str
    session: UUID
    attempt: int
    session_started_at: datetime
    session_last_activity_at: datetime


@dataclass(frozen=True)
class Busy:
    """Somebody else holds the job for so many more seconds."""

    seconds: float


def claim(job: UUID, kinds: Collection[str], now: datetime) -> Claim | Busy | None:
    """Take the job for the length of a lease; None when nothing is owed (any more), or work of another kind."""
    owed = Q(state=JobState.QUEUED) | Q(state=JobState.FAILED, daily_tries__lt=DAILY_TRIES)
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    taken = ClosingJob.objects.filter(owed, free, id=job, kind__in=kinds).update(
        attempt=F("attempt") + 1,
        lease_until=_lease(now),
        daily_tries=Case(
            When(state=JobState.FAILED, then=F("daily_tries") + 1),
            default=F("daily_tries"),
            output_field=IntegerField(),
        ),
    )
    row = ClosingJob.objects.filter(id=job, kind__in=kinds).first()
    if row is None:
        return None
    if taken:
        return _held(row)
    if row.state in OWED and row.lease_until is not None and row.lease_until > now:
        return Busy((row.lease_until - now).total_seconds())
    return None


def renew(held: Claim, now: datetime) -> bool:
    """Hold the job for another lease; False when it is no longer ours."""
    return bool(_ours(held).update(lease_until=_lease(now)))


def record(held: Claim, store: Store, now: datetime) -> None:
    """Store the result and the job's final state together; LeaseLost when the claim is not the latest."""
    with transaction.atomic():
        if not _ours(held).update(state=JobState.DONE, lease_until=None, next_try_at=None, last_error=""):
            raise LeaseLost(str(held.job))
        store(held, now)


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
    longest = min(_FIRST_WAIT_SECONDS * 2.0 ** (min(attempt, 20) - 1), _LONGEST_WAIT_SECONDS)
    return longest * (0.5 + _random.random() / 2)


def _held(row: ClosingJob) -> Claim:
    return Claim(
        job=row.id,
        kind=row.kind,
        session=row.session_id,
        attempt=row.attempt,
        session_started_at=row.session_started_at,
        session_last_activity_at=row.session_last_activity_at,
    )


def _ours(held: Claim) -> QuerySet[ClosingJob]:
    return ClosingJob.objects.filter(id=held.job, attempt=held.attempt, state__in=OWED)


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.WRAP_UP_LEASE_SECONDS)
