"""Reading the journal, in the current scope."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q

from memberintel.accounts.queries import person
from memberintel.vault.errors import CannotOpen
from sessions import queries as sessions
from wrapups.domain.journal import Day, Entry, Feeling, bounds, days, local_day
from wrapups.models import ClosingJob, JobKind, JobState, JournalEntry

DAYS_AT_MOST = 366
OWED = (JobState.QUEUED, JobState.FAILED)


def zone() -> ZoneInfo:
    """The customer's time zone: what a day is depends on it, and changes when it does."""
    return person().zone


def between(first: date, last: date, where: ZoneInfo) -> list[Day]:
    """Every day from `first` to `last`, both included, with its closed sessions; days without one are empty.

    ValueError for more days than 366, or a last day before the first.
    """
    if not 0 <= (last - first).days < DAYS_AT_MOST:
        raise ValueError(f"from 1 to {DAYS_AT_MOST} days can be asked for at once")
    return list(within([(first, last)], where).values())


def within(spans: Collection[tuple[date, date]], where: ZoneInfo) -> dict[date, Day]:
    """Every day of these spans, their ends included, with its closed sessions; read at once."""
    near = Q(pk__in=[])
    for first, last in spans:
        since, until = bounds(first, last)
        near |= Q(session_started_at__gte=since, session_started_at__lt=until)
    closed = ClosingJob.objects.filter(near, kind=JobKind.WRAP_UP).exclude(state=JobState.OFF_RECORD)
    local = {
        session: local_day(at, where)
        for session, at in closed.values_list("session_id", "session_started_at")
    }
    entries = _entries(
        session for session, day in local.items() if any(first <= day <= last for first, last in spans)
    )
    return {day.day: day for first, last in spans for day in days(entries, first, last, where)}


def days_written(before: date | None, where: ZoneInfo, limit: int) -> list[date]:
    """The newest days that have an entry, newest first, before a day."""
    rows = JournalEntry.objects.order_by("-session_started_at")
    if before is not None:
        rows = rows.filter(session_started_at__lt=bounds(before, before)[1])
    found: dict[date, None] = {}
    for at in rows.values_list("session_started_at", flat=True).iterator(chunk_size=200):
        day = local_day(at, where)
        if before is None or day < before:
            found[day] = None
        if len(found) > limit:
            break
    return list(found)[:limit]


def entry(session: UUID) -> Entry | None:
    """The entry of a session that has one, or None."""
    if not JournalEntry.objects.filter(session_id=session).exists():
        return None
    return next(iter(_entries([session])), None)


def unwritten(found: Iterable[Day]) -> dict[UUID, str]:
    """Where the passage of each session stands that has none yet: see JobState."""
    missing = [one.session for day in found for one in day.entries if one.blob is None and one.readable]
    jobs = ClosingJob.objects.filter(kind=JobKind.JOURNAL, session_id__in=missing)
    return dict(jobs.values_list("session_id", "state"))


def neighbours(day: date, where: ZoneInfo) -> tuple[date | None, date | None]:
    """The days with an entry right before and after a day."""
    earlier = days_written(day, where, 1)
    rows = JournalEntry.objects.filter(session_started_at__gte=bounds(day, day)[0]).order_by(
        "session_started_at"
    )
    later = (
        local_day(at, where)
        for at in rows.values_list("session_started_at", flat=True).iterator(chunk_size=50)
    )
    return (earlier[0] if earlier else None), next((one for one in later if one > day), None)


def _entries(wanted: Iterable[UUID]) -> list[Entry]:
    spans = sessions.spans(wanted)
    rows = {row.session_id: row for row in JournalEntry.objects.filter(session_id__in=list(spans))}
    return [
        _opened(Entry(session, started, ended), rows.get(session))
        for session, (started, ended) in spans.items()
    ]


def _opened(empty: Entry, row: JournalEntry | None) -> Entry:
    if row is None:
        return empty
    try:
        found = row.feeling
        feeling = (
            Feeling(found["mood"], found["energy"], found["reason"], tuple(found["themes"]))
            if found
            else None
        )
        return replace(empty, blob=row.blob, feeling=feeling, edited_at=row.edited_at)
    except CannotOpen:
        return replace(empty, readable=False)
