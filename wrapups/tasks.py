"""What the queue and the clock ask of wrap-ups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from celery import shared_task

from memberintel.tenancy.context import Scope, current_scope
from memberintel.tenancy.tasks import SystemTask, TenantTask
from memberintel.usage.runs import Recorded
from wrapups import backfill, makers
from wrapups.handover import carrier
from wrapups.work import Later

logger = logging.getLogger(__name__)


@shared_task(base=TenantTask)  # type: ignore[untyped-decorator]
def do_owed_work(*jobs: str) -> None:
    """Do work owed for a closed session, all pieces at once; put back on the queue what makes sense later."""
    scope = current_scope()
    asyncio.run(_do_all([UUID(job) for job in jobs], scope))


async def _do_all(jobs: list[UUID], scope: Scope) -> None:
    async def do(job: UUID) -> None:
        outcome = await makers.do(job, scope)
        if isinstance(outcome, Later):
            await asyncio.to_thread(nudge, [job], scope, seconds=outcome.seconds)

    results = await asyncio.gather(*map(do, jobs), return_exceptions=True)  # none breaks off the others
    for error in results:
        if isinstance(error, BaseException):
            raise error


def do_what_was_missed(run: Recorded) -> None:
    """A step of the daily run: owed work that nobody is at."""
    backfill.do(run, later=nudge)


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def hand_over() -> int:
    """Hand over what is due to the external memory, and delete there what was deleted here; how many."""
    return asyncio.run(carrier.carry())


def nudge(jobs: Sequence[UUID], scope: Scope, *, seconds: float = 0) -> None:
    """Put the customer's jobs on the queue, as one task. Never raises: the rows are there, and the backfill finds them
    without the queue."""
    try:
        do_owed_work.apply_async(
            tuple(map(str, jobs)),
            {"tenant": str(scope.tenant_id), "customer": str(scope.customer_id)},
            countdown=seconds or None,
            retry=False,
        )
    except Exception as error:
        logger.warning(
            "the queue takes nothing (%s): jobs %s wait for the backfill",
            type(error).__name__,
            ", ".join(map(str, jobs)),
        )
