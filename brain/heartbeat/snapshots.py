"""Keeping numbers and telling them anew: what a sync and an upload have in common. In the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from brain.domain.heartbeat import narrative
from brain.domain.heartbeat.metrics import Day, Numbers, SourceKind
from brain.heartbeat import queries
from brain.models import Heartbeat, MetricSnapshot, Site
from memberintel.lib import clock, tokens
from memberintel.vault.errors import Damaged

TOLD_DAYS = 61  # 30 days, the 30 before, and the day they are measured from


def lock(site: UUID) -> None:
    """One writer of a site's numbers at a time; queries.NotFound when it was deleted meanwhile."""
    if Site.objects.select_for_update().filter(id=site).first() is None:
        raise queries.NotFound


def keep(site: UUID, kind: SourceKind, days: Sequence[Day]) -> None:
    """Store the days. Where one is known already, what is new stands and the rest of it stays. Under `lock`."""
    wanted = {day.day: day.numbers for day in days}
    known = {
        row.day: row for row in MetricSnapshot.objects.filter(site_id=site, kind=kind, day__in=list(wanted))
    }
    now = clock.now()
    rows = []
    for day, numbers in wanted.items():
        row = known.get(day)
        stored = (numbers.over(_numbers(row)) if row else numbers).stored()
        # The id of the row that stands: sealed numbers are bound to it.
        fresh = MetricSnapshot(
            site_id=site, kind=kind, day=day, taken_at=now, **({"id": row.id} if row else {})
        )
        fresh.numbers = stored
        rows.append(fresh)
    MetricSnapshot.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["tenant_id", "site_id", "kind", "day"],
        update_fields=["numbers", "taken_at"],
    )


def tell(site: UUID) -> Heartbeat | None:
    """Write the narrative of what is known; None without numbers. The same numbers again change nothing."""
    parts = [narrative.told(kind, days) for kind, days in queries.last_days(site, TOLD_DAYS).items()]
    told = [part for part in parts if part is not None]
    if not told:
        return None
    limit = settings.HEARTBEAT_LIMIT_TOKENS
    text = narrative.written(told, lambda whole: tokens.count(whole) <= limit)
    day = max(part.through for part in told)
    row = Heartbeat.objects.filter(site_id=site, day=day).first() or Heartbeat(site_id=site, day=day)
    if _says(row) != text:
        row.narrative, row.made_at = text, clock.now()
        row.save()
    return row


def _numbers(row: MetricSnapshot) -> Numbers:
    try:
        return Numbers.read(row.numbers)
    except Damaged:  # numbers come anew; nothing a person wrote is lost
        return Numbers()


def _says(row: Heartbeat) -> str | None:
    try:
        return row.narrative if not row._state.adding else None
    except Damaged:
        return None
