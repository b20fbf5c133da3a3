"""What the queue and the clock ask of HEARTBEAT."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from celery import shared_task

from brain.heartbeat import sync
from memberintel.tenancy.tasks import SystemTask, TenantTask
from memberintel.usage import runs
from memberintel.usage.runs import Recorded

KIND: Final = "metrics_sync"  # as DAILY_STEPS calls it

logger = logging.getLogger(__name__)


@shared_task(base=TenantTask)  # type: ignore[untyped-decorator]
def sync_site(site: str) -> None:
    """Ask one site's sources now."""
    sync.sync_site(UUID(site))


def sync_due(run: Recorded) -> None:
    """A step of the daily run: ask the sources of every site that has a due one."""
    sync.run(count=run.count)


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def sync_again() -> None:
    """The same between two daily runs, if there is something due: where a day has ended since, or a source that was
    down is to be tried again."""
    if not sync.is_due():
        return
    try:
        with runs.recorded(KIND) as run:
            sync_due(run)
    except runs.AtWork:
        logger.info("another process syncs just now")


def nudge(site: UUID, tenant: UUID) -> None:
    """Put the site on the queue. Never raises: it is due, and the next run finds it without the queue."""
    try:
        sync_site.apply_async((str(site),), {"tenant": str(tenant)}, retry=False)
    except Exception as error:
        logger.warning(
            "the queue takes nothing (%s): site %s waits for the next run", type(error).__name__, site
        )
