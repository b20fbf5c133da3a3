"""Sites with sources on pretended servers, for the tests of HEARTBEAT."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from brain.domain.heartbeat.metrics import Day, Numbers, SourceKind
from brain.heartbeat import actions, queries, snapshots
from brain.models import Site, Source
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from tests.conftest import Person


def site_of(who: Person, name: str = "Kiln & Kin", zone: str = "UTC") -> UUID:
    """A new site of theirs."""
    with scope(who.scope):
        return actions.add_site(name=name, time_zone=zone).id


def connected(who: Person, site: UUID, kind: SourceKind, **credentials: Any) -> UUID:
    """A source that is due, without having been tried."""
    with scope(who.scope):
        row = Source(site_id=site, kind=kind, credentials=credentials, due_at=clock.now())
        row.save()
        return row.id


def source_of(who: Person, source: UUID) -> Source:
    """Its row."""
    with scope(who.scope):
        return Source.objects.get(id=source)


def days_of(who: Person, site: UUID, kind: SourceKind) -> dict[date, Numbers]:
    """All its numbers."""
    with scope(who.scope):
        return {each.day: each.numbers for each in queries.days(site, kind, date.min, date.max)}


def told_of(who: Person, site: UUID) -> str:
    """The newest narrative, "" without one."""
    with scope(who.scope):
        told = queries.told(site)
        return (told.text or "") if told else ""


def numbers(who: Person, site: UUID, last: date, length: int = 70, kind: SourceKind = "csv") -> None:
    """So many plausible days, as if uploaded."""
    days = []
    for back in range(length):
        counts = {"active_members": 200 - back, "new": 2, "churned": 1}
        days.append(Day(last - timedelta(days=back), Numbers(counts, {"USD": 100_000 - 50 * back})))
    with scope(who.scope), transaction.atomic():
        snapshots.lock(site)
        if not Source.objects.filter(site_id=site, kind=kind).exists():
            Source(site_id=site, kind=kind, through=last).save()
        snapshots.keep(site, kind, days)
        snapshots.tell(site)


def sites_of(who: Person) -> int:
    """How many sites there are."""
    with scope(who.scope):
        return Site.objects.count()
