"""What staff must know of owed wrap-ups, across tenants: how many, how old, which codes. No content.

Read over the login `support`. Nothing is counted: at most so many rows are fetched along a partial index, and
"more than" is said beyond.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from memberintel.tenancy.desk import SUPPORT, since
from wrapups.domain.states import UNFUNDED_FOR
from wrapups.models import ClosingJob, JobKind, JobState, SessionLog

MOST = 500


@dataclass(frozen=True)
class Owed:
    """The state of the writer. Numbers end at MOST; `codes` are those of the failed, most first; `unfunded` are those
    of the last days, which a budget that is back still pays for."""

    failed: int
    waiting: int
    overdue: int
    oldest: datetime | None
    codes: tuple[tuple[str, int], ...]
    last_written: datetime | None
    unfunded: int = 0


def owed(now: datetime) -> Owed:
    """How owed wrap-ups stand. Overdue is what the backfill would take up: queued longer than the setting says."""
    failed = list(_jobs(JobState.FAILED).values_list("last_error", flat=True)[:MOST])
    waiting = list(_jobs(JobState.QUEUED).values_list("created_at", flat=True)[:MOST])
    late = now - timedelta(seconds=settings.WRAP_UP_BACKFILL_AFTER_SECONDS)
    unfunded = _jobs(JobState.UNFUNDED).filter(id__gte=since(now - UNFUNDED_FOR)).values_list("id")
    newest = SessionLog.objects.using(SUPPORT).order_by("-id").values_list("created_at", flat=True)[:1]
    return Owed(
        failed=len(failed),
        waiting=len(waiting),
        overdue=sum(at <= late for at in waiting),
        oldest=min(waiting, default=None),
        codes=tuple(Counter(code or "unknown" for code in failed).most_common(4)),
        last_written=next(iter(newest), None),
        unfunded=len(unfunded[:MOST]),
    )


def _jobs(state: JobState) -> QuerySet[ClosingJob]:
    return ClosingJob.objects.using(SUPPORT).filter(state=state, kind=JobKind.WRAP_UP).order_by("id")


def made(begin: datetime, end: datetime) -> int:
    """How many wrap-ups of the customer in scope were written from `begin` until before `end`."""
    return SessionLog.objects.filter(id__gte=since(begin), id__lt=since(end)).count()


def held() -> int:
    """How many wrap-ups the customer in scope has."""
    return SessionLog.objects.count()
