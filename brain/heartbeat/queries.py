"""Reading a tenant's sites, their sources and numbers, in the current scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import cast
from uuid import UUID
from zoneinfo import ZoneInfo

from brain.domain.heartbeat.metrics import SOURCE_KINDS, Day, Numbers, SourceKind
from brain.models import Heartbeat, MetricSnapshot, Site, Source
from memberintel.accounts.domain import time_zones
from memberintel.vault.errors import Damaged

UNREADABLE = "(a site whose name cannot be opened)"


class NotFound(Exception):
    """No such site or source in this tenant."""


@dataclass(frozen=True)
class SourceView:
    """A source without what it is opened with."""

    id: UUID
    kind: SourceKind
    state: str
    through: date | None
    last_synced_at: datetime | None
    last_tried_at: datetime | None
    last_error: str

    @property
    def asked(self) -> bool:
        """Whether it is asked every day; files are brought by people."""
        return self.kind != "csv" and self.state != "disconnected"


@dataclass(frozen=True)
class SiteView:
    """A site with its sources."""

    id: UUID
    name: str
    time_zone: str
    sources: tuple[SourceView, ...]

    @property
    def zone(self) -> ZoneInfo:
        """Where its days begin."""
        return zone_of(self.time_zone)

    def source(self, kind: str) -> SourceView | None:
        """Its source of that kind."""
        return next((each for each in self.sources if each.kind == kind), None)


@dataclass(frozen=True)
class Told:
    """The newest narrative of a site; `text` is None when it cannot be opened."""

    id: UUID
    day: date
    text: str | None


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name; UTC when it is no longer known."""
    return ZoneInfo(name if name in time_zones() else "UTC")


def sites() -> list[SiteView]:
    """All sites of the tenant, oldest first."""
    rows = list(Site.objects.order_by("id"))
    sources: dict[UUID, list[SourceView]] = {}
    for row in Source.objects.defer("credentials").order_by("id"):
        sources.setdefault(row.site_id, []).append(_source(row))
    return [_site(row, sources.get(row.id, [])) for row in rows]


def site(site_id: UUID) -> SiteView:
    """One site; NotFound."""
    row = Site.objects.filter(id=site_id).first()
    if row is None:
        raise NotFound
    return _site(row, [_source(each) for each in Source.objects.filter(site_id=site_id).order_by("id")])


def source(site_id: UUID, source_id: UUID) -> SourceView:
    """One source of a site; NotFound."""
    row = Source.objects.filter(site_id=site_id, id=source_id).first()
    if row is None:
        raise NotFound
    return _source(row)


def days(site_id: UUID, kind: SourceKind, first: date, last: date) -> list[Day]:
    """The known days of one source from `first` to `last`, ascending. A day that cannot be opened is left out."""
    rows = MetricSnapshot.objects.filter(site_id=site_id, kind=kind, day__range=(first, last)).order_by("day")
    return list(_days(rows))


def last_days(site_id: UUID, length: int) -> dict[SourceKind, list[Day]]:
    """The last days of every source with any: so many before its own last one."""
    found: dict[SourceKind, list[Day]] = {}
    for kind in SOURCE_KINDS:
        newest = (
            MetricSnapshot.objects.filter(site_id=site_id, kind=kind)
            .order_by("-day")
            .values_list("day", flat=True)
            .first()
        )
        if newest is not None and (held := days(site_id, kind, newest - timedelta(days=length - 1), newest)):
            found[kind] = held
    return found


def told(site_id: UUID) -> Told | None:
    """The newest narrative, or None before the first numbers."""
    row = Heartbeat.objects.filter(site_id=site_id).order_by("-day").first()
    return _told(row) if row else None


def _days(rows: Iterable[MetricSnapshot]) -> Iterable[Day]:
    for row in rows:
        try:
            yield Day(row.day, Numbers.read(row.numbers))
        except Damaged:
            continue


def _told(row: Heartbeat) -> Told:
    try:
        return Told(row.id, row.day, row.narrative)
    except Damaged:
        return Told(row.id, row.day, None)


def _site(row: Site, sources: list[SourceView]) -> SiteView:
    try:
        name = row.name
    except Damaged:
        name = UNREADABLE
    return SiteView(row.id, name, row.time_zone, tuple(sources))


def _source(row: Source) -> SourceView:
    return SourceView(
        row.id,
        cast(SourceKind, row.kind),
        row.state,
        row.through,
        row.last_synced_at,
        row.last_tried_at,
        row.last_error,
    )
