"""What the clock asks of sessions."""

from __future__ import annotations

from datetime import timedelta
from itertools import batched
from uuid import UUID

from celery import shared_task

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.tasks import SystemTask, TenantTask
from sessions import closing, erasure, indexer
from sessions.models import CloseReason, EraseReason

BATCH = 500
MOST, TOGETHER = 20_000, 50
"""Sessions one sweep hands out, and of these one task."""
RECENT = timedelta(days=2)


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def sweep(idle: bool = True) -> int:
    """Hand every due session to a task, TOGETHER to each; how many. Beside those to close: what a close left to erase.

    Beyond MOST the rest is left to the next sweep.
    """
    for session, who in erasure.unkept(limit=BATCH):
        erase.delay(str(session), tenant=str(who.tenant_id), customer=str(who.customer_id))
    due = closing.due(now=clock.now(), idle=idle, limit=MOST)
    for some in batched(due, TOGETHER, strict=False):
        close_due.delay([[*map(str, ids), reason.value] for *ids, reason in some])
    return len(due)


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def close_due(due: list[list[str]]) -> int:
    """Close these sessions of any tenants, each given as (session, tenant, customer, reason); how many did close."""
    named = [
        (UUID(session), UUID(tenant), UUID(who), CloseReason(reason)) for session, tenant, who, reason in due
    ]
    return closing.close_due(named, now=clock.now())


@shared_task(base=TenantTask)  # type: ignore[untyped-decorator]
def erase(session: str) -> int:
    """Erase the events of a session off the record that is over; how many there were. 0: another was faster."""
    try:
        return erasure.erase(UUID(session), EraseReason.OFF_RECORD)
    except erasure.NothingErased:
        return 0


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def heal_search(everything: bool = False) -> int:
    """Hand every session whose search index lags to a task of its own; how many.

    Looks at those opened of late; with `everything` at all, which reads a row of each. Beyond BATCH the rest is
    left to the next time.
    """
    past = UUID(int=0) if everything else uuid7(clock.now() - RECENT, entropy=bytes(32))
    lagging = indexer.lagging(past=past, limit=BATCH)
    for session, who in lagging:
        index.delay(str(session), tenant=str(who.tenant_id), customer=str(who.customer_id))
    return len(lagging)


@shared_task(base=TenantTask)  # type: ignore[untyped-decorator]
def index(session: str) -> int:
    """Bring the search index of one session up to date."""
    return indexer.index(UUID(session))
