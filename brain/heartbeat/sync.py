"""Asking the sources of all sites for the days that are over. Safe to run twice at once, safe to kill."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, connections, transaction
from django.db.models import Q

from brain.domain.heartbeat.metrics import SourceKind
from brain.heartbeat import queries, snapshots
from brain.heartbeat.sources import ASKED, Failed, Fetched, Window, fetcher
from brain.models import Site, Source
from memberintel.lib import clock
from memberintel.tenancy.context import Scope, outside_scopes, scope
from memberintel.tenancy.unit import give_back
from memberintel.vault.errors import CannotOpen

logger = logging.getLogger(__name__)

_PAGE: Final = 200
_AT_ONCE: Final = 4
_FIRST: Final = UUID(int=0)
_RETRY: Final = timedelta(hours=1)  # after the first failure; twice as long after each further one
_LONGEST: Final = timedelta(hours=24)
_AFTER_MIDNIGHT: Final = timedelta(minutes=30)

# What a customer is told for a code; the messages of Failed are for the person who has just connected.
ERRORS: Final[dict[str, str]] = {
    "bad_key": "it does not accept the key any more",
    "no_right": "the key may not read everything that is needed",
    "rate_limited": "it is getting too many requests",
    "timeout": "it takes too long to answer",
    "too_slow": "it takes too long to give everything",
    "too_long": "its answer is too long",
    "unreachable": "it cannot be reached",
    "unknown_name": "its name cannot be found",
    "not_public": "its address is not on the open internet",
    "redirected": "its address sends visitors on to another",
    "bad_certificate": "its certificate is not valid",
    "no_api": "there is no MemberPress API at its address",
    "unreadable": "its answer cannot be read",
    "refused": "it refuses the request",
    "broken": "it has a problem of its own",
    "cannot_open": "its key cannot be opened here",
}
SOMETHING: Final = "something went wrong on our side; it has been recorded"


@dataclass(frozen=True)
class _Task:
    """A source to be asked, and for which days."""

    source: UUID
    kind: SourceKind
    window: Window


def run(*, count: Callable[[str, int], None] | None = None) -> dict[str, int]:
    """Sync every site with a due source, a few at a time; counts of sources by outcome, also told to `count`.

    To be called without a scope. One that fails or hangs holds up no other; one that another run is at is left.
    """
    counts: Counter[str] = Counter(due=0, synced=0, failed=0, busy=0)
    past, now = _FIRST, clock.now()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="sync") as threads:
        while page := _due(now, past):
            counts["due"] += len(page)
            done = [threads.submit(Context().run, _one, site, tenant) for site, tenant in page]
            for each in done:
                for name, number in each.result().items():
                    counts[name] += number
                    if count:
                        count(name, number)
            past = page[-1][0]
    return dict(counts)


def is_due() -> bool:
    """Whether there is anything to do for a run now."""
    return bool(_due(clock.now(), _FIRST))


def _due(now: datetime, past: UUID) -> list[tuple[UUID, UUID]]:
    with outside_scopes(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM app.due_sites(%s, %s, %s)", [_PAGE, now, past])
        return list(cursor.fetchall())


def _one(site: UUID, tenant: UUID) -> dict[str, int]:
    try:
        with scope(Scope(tenant)):
            return sync_site(site)
    except Exception as error:
        logger.error("site %s was not synced: %s", site, type(error).__name__)
        return {"failed": 1}
    finally:
        connections.close_all()


def sync_site(site: UUID, *, now: datetime | None = None) -> dict[str, int]:
    """Ask the due sources of a site of the current tenant, keep what they give, and tell it; counts by outcome.

    No connection is held while a source is asked. A source that fails leaves its numbers and the narrative as
    they are, with their dates, and is asked again later.
    """
    now = now or clock.now()
    until = now + timedelta(seconds=len(ASKED) * settings.HEARTBEAT_SOURCE_SECONDS + 120)
    free = Site.objects.filter(Q(lease_until=None) | Q(lease_until__lte=now), id=site)
    if not free.update(lease_until=until):
        return {"busy": 1}
    counts: Counter[str] = Counter()
    try:
        for task in _tasks(site, now):
            counts[_ask(site, task)] += 1
    finally:
        Site.objects.filter(id=site, lease_until=until).update(lease_until=None)
    return dict(counts)


def _tasks(site: UUID, now: datetime) -> list[_Task]:
    """What there is to ask; sources that gave yesterday already are put off till tomorrow."""
    zone = queries.site(site).zone
    yesterday = now.astimezone(zone).date() - timedelta(days=1)
    found = []
    for row in Source.objects.filter(site_id=site, due_at__lte=now).defer("credentials").order_by("id"):
        back = ASKED[row.kind].days_back  # type: ignore[index]
        first = yesterday - timedelta(days=back - 1)
        if row.through is not None:
            first = max(first, row.through + timedelta(days=1))
        if first > yesterday:
            Source.objects.filter(id=row.id).update(due_at=_tomorrow(Window(first, first, zone, now)))
        else:
            found.append(_Task(row.id, row.kind, Window(first, yesterday, zone, now)))  # type: ignore[arg-type]
    return found


def _tomorrow(window: Window) -> datetime:
    """When the day after the window's last one is over."""
    following = Window(
        window.last + timedelta(days=1), window.last + timedelta(days=1), window.zone, window.now
    )
    return max(following.ended, window.now) + _AFTER_MIDNIGHT


def _ask(site: UUID, task: _Task) -> str:
    """Ask one source; `synced`, `failed`, or `gone` when it was disconnected meanwhile."""
    try:
        row = Source.objects.filter(id=task.source).first()
        if row is None or row.credentials is None:
            return "gone"
        credentials = row.credentials
        if not connection.in_atomic_block:
            give_back()
        fetched = fetcher(task.kind, credentials).fetch(task.window)
    except Failed as failure:
        return _failed(task, failure.code, failure.again)
    except CannotOpen:
        return _failed(task, "cannot_open", again=True)
    except Exception as error:
        logger.error("source %s failed: %s", task.source, type(error).__name__)
        return _failed(task, "internal", again=True)
    return _keep(site, task, fetched)


def _keep(site: UUID, task: _Task, fetched: Fetched) -> str:
    with transaction.atomic():
        try:
            snapshots.lock(site)
        except queries.NotFound:
            return "gone"
        standing = Source.objects.filter(id=task.source, credentials__isnull=False)
        if not standing.update(
            state="connected",
            through=task.window.last,
            due_at=_tomorrow(task.window),
            last_synced_at=task.window.now,
            last_tried_at=task.window.now,
            last_error="",
            failures=0,
        ):
            return "gone"
        snapshots.keep(site, task.kind, fetched.days)
        snapshots.tell(site)
    return "synced"


def _failed(task: _Task, code: str, again: bool) -> str:
    with transaction.atomic():
        row = Source.objects.select_for_update().filter(id=task.source).defer("credentials").first()
        if row is None or row.due_at is None:
            return "gone"
        row.failures += 1
        wait = min(_RETRY * 2 ** min(row.failures - 1, 10), _LONGEST) if again else _LONGEST
        Source.objects.filter(id=row.id).update(
            state="failing",
            last_error=code,
            failures=row.failures,
            last_tried_at=task.window.now,
            due_at=task.window.now + wait,
        )
    return "failed"
