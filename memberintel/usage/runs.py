"""Runs of the clock's work, as rows: what ran when, what it counted, how it ended. And that it runs once at a time.

A run holds its row by a lease that a thread renews while it works, whatever the work itself waits for. No lock and
no transaction is held: when a process is killed, its lease lapses and the next one takes over. Leases go by the
database's clock, which all processes share.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.db import Error, IntegrityError, connections, models, transaction
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from memberintel.lib import clock, metrics
from memberintel.tenancy.desk import SUPPORT
from memberintel.usage.models import Run

LEASE_SECONDS = 60
RENEW_SECONDS = 10.0
KILLED = "killed"  # what is written of a run whose process ended without a word


class AtWork(Exception):
    """Another process does this kind of run just now; nothing was begun."""


class LeaseLost(Exception):
    """The run was taken for dead and given to another process: it must end."""


class Recorded:
    """A run at work. What it counts is in its row within seconds, and at its end."""

    def __init__(self, row: UUID) -> None:
        self.id, self.counts, self.lost = row, Counter[str](), False

    def count(self, name: str, number: int = 1) -> None:
        """Count so many more. LeaseLost when the run is no longer ours."""
        if self.lost:
            raise LeaseLost
        self.counts[name] += number


@contextmanager
def recorded(kind: str, *, alone: bool = True) -> Iterator[Recorded]:
    """Do the work inside as a run of that kind. Outside transactions.

    With `alone` only where no other process is at it: AtWork otherwise. An exception of the work is kept by its
    type, and goes on; nothing of its text is kept, which may quote content.
    """
    run = Recorded(_begin(kind, alone))
    over = threading.Event()
    keeper = threading.Thread(target=_keep, args=(run, over), name=f"run {kind}", daemon=True)
    keeper.start()
    error = ""
    try:
        yield run
    except BaseException as raised:
        error = named(raised)
        raise
    finally:
        over.set()
        keeper.join()
        _mine(run).update(counts=dict(run.counts), finished_at=clock.now(), error=error)
        metrics.RUNS.labels(kind, "broke" if error else "well").inc()


def state(row: Run) -> str:
    """finished, broke, killed or at work."""
    if row.error:
        return row.error if row.error == KILLED else "broke"
    if row.finished_at:
        return "finished"
    return "at work" if row.lease_until and row.lease_until > clock.now() else KILLED


def newest(most: int) -> list[Run]:
    """The newest runs, for staff. Read over `support`."""
    return list(Run.objects.using(SUPPORT).order_by("-id")[:most])


def _begin(kind: str, alone: bool) -> UUID:
    try:
        with transaction.atomic(durable=True):
            Run.objects.filter(kind=kind, finished_at=None, lease_until__lte=Now()).update(
                finished_at=clock.now(), error=KILLED
            )
            return Run.objects.create(kind=kind, alone=alone, lease_until=_lease()).id
    except IntegrityError:
        raise AtWork(kind) from None


def _keep(run: Recorded, over: threading.Event) -> None:
    """Hold the run until it is over, and tell how far it is."""
    while not over.wait(RENEW_SECONDS):
        try:
            run.lost = not _mine(run).update(lease_until=_lease(), counts=dict(run.counts))
        except Error:
            continue  # the database is away for a moment; the lease outlives several renewals
        finally:
            connections.close_all()


def _mine(run: Recorded) -> models.QuerySet[Run]:
    return Run.objects.filter(id=run.id, finished_at=None)


def _lease() -> CombinedExpression:
    return Now() + timedelta(seconds=LEASE_SECONDS)


def named(error: BaseException) -> str:
    """The type of an exception; of a group the types inside."""
    return ", ".join(dict.fromkeys(_types(error)))[:200]


def _types(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _types(inner)
    else:
        yield type(error).__name__
