"""Owed work as rows, whatever its kind: claiming it, holding it, recording what came of it. In the job's own scope.

A worker claims a job for the length of a lease, works without a transaction, and records the result under the
attempt it claimed: a claim made since makes the result void.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import SystemRandom
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.usage import charges
from memberintel.usage.models import Kind
from wrapups.domain.states import DAILY_TRIES, TRIES, UNFUNDED_FOR
from wrapups.models import ClosingJob, JobKind, JobState

OWED = (JobState.QUEUED, JobState.FAILED)
CHARGED: dict[str, Kind] = {
    JobKind.WRAP_UP: Kind.WRAP_UP,
    JobKind.JOURNAL: Kind.JOURNAL,
    JobKind.MOOD: Kind.MOOD,
}
"""What a job of each kind is charged as: one unit for its session."""
_FIRST = UUID(int=0)
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
class NoBudget:
    """The month's budget is used up: the job is `unfunded`."""


@dataclass(frozen=True)
class Busy:
    """Somebody else holds the job for so many more seconds."""

    seconds: float


def claim(job: UUID, kinds: Collection[str], now: datetime) -> Claim | Busy | NoBudget | None:
    """Take the job for the length of a lease, and reserve its charge; None when nothing is owed (any more), or work of
    another kind."""
    with transaction.atomic(savepoint=False):
        held, charged = _taken(job, kinds, now)
        if held is None:
            return _not_taken(job, kinds, now)
        if charged and not charges.take(CHARGED[held.kind], held.session):
            ClosingJob.objects.filter(id=job).update(
                state=JobState.UNFUNDED, lease_until=None, next_try_at=None, attempt=F("attempt") - 1
            )
            return NoBudget()
        return held


_TAKE = """
UPDATE closing_jobs SET
  attempt = attempt + 1, lease_until = %(until)s,
  state = CASE state WHEN 'unfunded' THEN 'queued' ELSE state END,
  daily_tries = daily_tries + CASE state WHEN 'failed' THEN 1 ELSE 0 END
WHERE tenant_id = %(tenant)s AND customer_id = %(customer)s AND id = %(job)s AND kind = ANY(%(kinds)s)
  AND (state = 'queued' OR state = 'failed' AND daily_tries < %(tries)s
       OR state = 'unfunded' AND created_at > %(unfunded_from)s)
  AND (lease_until IS NULL OR lease_until <= %(now)s)
RETURNING id, kind, session_id, attempt, session_started_at, session_last_activity_at, charged
"""


def _taken(job: UUID, kinds: Collection[str], now: datetime) -> tuple[Claim | None, bool]:
    """Our claim on the job, if it is owed and nobody holds it, and whether it is charged. What was unfunded is queued
    by it."""
    values: dict[str, Any] = {
        "tenant": current_tenant_id(),
        "customer": current_customer_id(),
        "job": job,
        "kinds": list(kinds),
        "tries": DAILY_TRIES,
        "unfunded_from": now - UNFUNDED_FOR,
        "now": now,
        "until": _lease(now),
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        row = cursor.fetchone()
    return (Claim(*row[:-1]), row[-1]) if row else (None, False)


def _not_taken(job: UUID, kinds: Collection[str], now: datetime) -> Busy | None:
    row = ClosingJob.objects.filter(id=job, kind__in=kinds, state__in=OWED, lease_until__gt=now).first()
    if row is None or row.lease_until is None:
        return None
    return Busy((row.lease_until - now).total_seconds())


@dataclass(frozen=True)
class Due:
    """What the backfill takes, across tenants: `queued` made before `made_before` with a lease free at `now`, `failed`
    with daily tries left, `unfunded` and not too old."""

    kinds: Collection[str]
    made_before: datetime
    now: datetime

    def count(self) -> int:
        """How many."""
        return int(self._rows("count(*)", _FIRST, 2**31 - 1)[0][0])

    def page(self, past: UUID | None, limit: int) -> list[tuple[UUID, UUID, UUID]]:
        """(job, tenant, customer) of the next ones by id."""
        return self._rows("id, tenant_id, customer_id", past or _FIRST, limit)

    def _rows(self, what: str, past: UUID, limit: int) -> list[Any]:
        unfunded_from = uuid7(self.now - UNFUNDED_FOR, bytes(10))
        values: list[Any] = [list(self.kinds), self.made_before, self.now, unfunded_from, past, limit]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {what} FROM app.owed_jobs(%s, %s, %s, %s, %s, %s)", values)  # noqa: S608 (ours)
            return list(cursor.fetchall())


def renew(held: Claim, now: datetime) -> bool:
    """Hold the job for another lease; False when it is no longer ours."""
    return bool(_ours(held).update(lease_until=_lease(now)))


def record(held: Claim, store: Store, now: datetime) -> None:
    """Store the result and the job's final state together; LeaseLost when the claim is not the latest."""
    with transaction.atomic(savepoint=False):
        if not _finished(held):
            raise LeaseLost(str(held.job))
        store(held, now)


_FINISH = """
UPDATE closing_jobs SET state = 'done', lease_until = NULL, next_try_at = NULL, last_error = ''
WHERE tenant_id = %s AND customer_id = %s AND id = %s AND attempt = %s AND state = ANY(%s)
"""


def _finished(held: Claim) -> bool:
    """Make the job done; False when the claim is not the latest."""
    values: list[Any] = [current_tenant_id(), current_customer_id(), held.job, held.attempt, list(OWED)]
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, values)
        return bool(cursor.rowcount)


def give_up(
    held: Claim, code: str, now: datetime, *, retryable: bool, keep_queued: bool = False
) -> float | None:
    """Record that the attempt failed with `code`; seconds until the next one, or None when there is none.

    `keep_queued` is for what is wrong with the installation (a key that is missing) and not with the job: it
    must not use up the job's tries. A job that has failed gives its charge back.
    """
    row = _ours(held).select_for_update().first()
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
    if row.charged and not queued:
        charges.give_back(CHARGED[row.kind], row.session_id)
    return wait


def forget(session: UUID) -> None:
    """Let nothing be made of the session any more; charges reserved for what is not made go back."""
    with transaction.atomic():
        rows = ClosingJob.objects.filter(session_id=session).order_by("id")
        owed = list(rows.select_for_update().filter(state=JobState.QUEUED, charged=True))
        rows.exclude(state__in=[JobState.TRIVIAL, JobState.OFF_RECORD]).update(
            state=JobState.DELETED, lease_until=None, next_try_at=None
        )
        for row in owed:
            charges.give_back(CHARGED[row.kind], session)


def expire(session: UUID, *kinds: JobKind) -> None:
    """Let nothing of these kinds be made of the session any more, because it is too old; charges reserved for what is
    not made go back."""
    rows = ClosingJob.objects.filter(session_id=session, kind__in=kinds).order_by("id")
    with transaction.atomic():
        owed = list(rows.select_for_update().filter(state=JobState.QUEUED, charged=True))
        rows.exclude(state__in=[JobState.TRIVIAL, JobState.OFF_RECORD, JobState.DELETED]).update(
            state=JobState.EXPIRED, lease_until=None, next_try_at=None
        )
        for row in owed:
            charges.give_back(CHARGED[row.kind], session)


def expire_given_up(session: UUID) -> None:
    """What was not made of the session, and is not tried again by itself, cannot be made any more."""
    rows = ClosingJob.objects.filter(session_id=session, state__in=[JobState.FAILED, JobState.UNFUNDED])
    rows.update(state=JobState.EXPIRED, lease_until=None, next_try_at=None)


def put_back(job: UUID, now: datetime) -> bool:
    """Make a queued, failed or unfunded job due at once, with new daily tries; False when it is none, or being worked
    on.

    `attempt` stays: it fences the claims that were made before.
    """
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    return bool(
        ClosingJob.objects.filter(free, id=job, state__in=(*OWED, JobState.UNFUNDED)).update(
            state=JobState.QUEUED, daily_tries=0, next_try_at=None
        )
    )


def backoff(attempt: int) -> float:
    """Seconds to wait after that attempt: doubling, with jitter so that many failures do not come back at once."""
    longest = min(_FIRST_WAIT_SECONDS * 2.0 ** (min(attempt, 20) - 1), _LONGEST_WAIT_SECONDS)
    return longest * (0.5 + _random.random() / 2)


def _ours(held: Claim) -> QuerySet[ClosingJob]:
    return ClosingJob.objects.filter(id=held.job, attempt=held.attempt, state__in=OWED)


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.WRAP_UP_LEASE_SECONDS)
