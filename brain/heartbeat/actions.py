"""What may be done to a tenant's sites and sources, in the current scope. Who may do it is the edges' to ask."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from brain import actions as brain
from brain.domain.heartbeat import csv_file
from brain.domain.heartbeat.metrics import SourceKind
from brain.heartbeat import queries, snapshots, tasks
from brain.heartbeat.queries import NotFound, SiteView
from brain.heartbeat.sources import fetcher
from brain.models import MetricSnapshot, Site, Source
from brain.signals import parts_removed
from memberintel.accounts.domain import time_zones
from memberintel.lib import clock
from memberintel.lib.text import clean
from memberintel.tenancy.context import Scope, current_scope, scope
from memberintel.tenancy.models import User
from memberintel.tenancy.unit import give_back

logger = logging.getLogger(__name__)

MOST_SITES = 20
LONGEST_NAME = 80


class Refused(Exception):
    """It was not done; the message is for the person who asked."""


@dataclass(frozen=True)
class Uploaded:
    """What a file brought."""

    days: int
    first: date
    last: date


def add_site(*, name: str, time_zone: str) -> SiteView:
    """A new site of the tenant; Refused for a name or zone that will not do, or for one site too many."""
    row = Site(name=_name(name), time_zone=_zone(time_zone))
    with transaction.atomic():
        if Site.objects.count() >= MOST_SITES:
            raise Refused(f"There are {MOST_SITES} sites already; more are not possible.")
        row.save(force_insert=True)
    return queries.site(row.id)


def change_site(site: UUID, *, name: str, time_zone: str) -> SiteView:
    """Rename it, or count its days in another zone from now on. NotFound, Refused."""
    with transaction.atomic():
        row = Site.objects.select_for_update().filter(id=site).first()
        if row is None:
            raise NotFound
        row.name, row.time_zone = _name(name), _zone(time_zone)
        row.save(update_fields=["name", "time_zone"])
    return queries.site(site)


def delete_site(site: UUID) -> None:
    """Delete it with its sources, its numbers, what they told, and that in every prompt. NotFound."""
    with transaction.atomic():
        snapshots.lock(site)
        touched = _forget_heartbeats(site)
        MetricSnapshot.objects.filter(site_id=site).delete()
        Source.objects.filter(site_id=site).delete()
        Site.objects.filter(id=site).delete()
    if touched:
        _restate_prompts()


def check(kind: SourceKind, credentials: Mapping[str, Any]) -> None:
    """Ask the source whether it can be read with these; sources.Failed says why not. Holds no connection."""
    if not connection.in_atomic_block:
        give_back()
    fetcher(kind, dict(credentials)).check()


def connect(site: UUID, kind: SourceKind, credentials: Mapping[str, Any]) -> UUID:
    """Connect a source, or give the one of that kind new credentials; its first numbers come at once.

    The credentials are tried first: sources.Failed, and nothing is stored. NotFound for the site.
    """
    queries.site(site)
    check(kind, credentials)
    try:
        with transaction.atomic():
            snapshots.lock(site)
            row = Source.objects.filter(site_id=site, kind=kind).first() or Source(site_id=site, kind=kind)
            row.credentials = dict(credentials)
            row.state, row.due_at, row.last_error, row.failures = "connected", clock.now(), "", 0
            row.save()
            transaction.on_commit(partial(tasks.nudge, site, current_scope().tenant_id), robust=True)
    except IntegrityError:  # two first connections at once: the other one stands
        raise Refused("This source has just been connected on another page.") from None
    return row.id


def try_again(site: UUID, source: UUID) -> None:
    """Ask a connected source whether it can be read, and if so for its numbers now. NotFound, sources.Failed."""
    row = Source.objects.filter(site_id=site, id=source).first()
    if row is None or row.credentials is None:
        raise NotFound
    check(row.kind, row.credentials)  # type: ignore[arg-type]
    Source.objects.filter(id=source, due_at__isnull=False).update(due_at=clock.now())
    tasks.nudge(site, current_scope().tenant_id)


def disconnect(site: UUID, source: UUID, *, forget: bool) -> None:
    """Destroy its credentials; NotFound. Its numbers stay, or are forgotten with all that they told."""
    touched = 0
    with transaction.atomic():
        snapshots.lock(site)
        row = Source.objects.filter(site_id=site, id=source).first()
        if row is None:
            raise NotFound
        if forget:
            touched = _forget_heartbeats(site)
            MetricSnapshot.objects.filter(site_id=site, kind=row.kind).delete()
            row.delete()
            snapshots.tell(site)
        else:
            row.credentials, row.due_at, row.state = None, None, "disconnected"
            row.save(update_fields=["credentials", "due_at", "state"])
    if touched:
        _restate_prompts()


def upload(site: UUID, data: bytes) -> Uploaded:
    """Keep the numbers of a file; csv_file.BadFile with every fault, and nothing was kept. NotFound."""
    today = clock.now().astimezone(queries.site(site).zone).date()
    days = csv_file.read(data, today=today)
    now = clock.now()
    with transaction.atomic():
        snapshots.lock(site)
        row = Source.objects.filter(site_id=site, kind="csv").first() or Source(site_id=site, kind="csv")
        row.state, row.last_synced_at, row.last_tried_at = "connected", now, now
        row.through = max(days[-1].day, row.through or days[-1].day)
        row.save()
        snapshots.keep(site, "csv", days)
        snapshots.tell(site)
    return Uploaded(len(days), days[0].day, days[-1].day)


def _forget_heartbeats(site: UUID) -> int:
    brain.hold_parts(_team())
    with connection.cursor() as cursor:
        cursor.execute("SELECT app.forget_heartbeats(%s, %s)", [site, clock.now().date()])
        return int(cursor.fetchone()[0])


def _restate_prompts() -> None:
    """Let the open conversations of the whole team hear of it, each in its own scope."""
    tenant = current_scope().tenant_id
    for person in _team():
        with scope(Scope(tenant, person)):
            for _, error in parts_removed.send_robust(sender=None):
                if error is not None:
                    logger.error("a prompt was not stated anew: %s", type(error).__name__)


def _team() -> list[UUID]:
    """Everybody whose prompts the tenant's numbers may stand in, also those who were removed."""
    return list(User.objects.filter(tenant_id=current_scope().tenant_id).values_list("id", flat=True))


def _name(text: str) -> str:
    name = " ".join(clean(text).split())
    if not name:
        raise Refused("Give the site a name.")
    if len(name) > LONGEST_NAME:
        raise Refused(f"The name may have {LONGEST_NAME} characters.")
    return name


def _zone(name: str) -> str:
    if name not in time_zones():
        raise Refused("There is no such time zone.")
    return name
