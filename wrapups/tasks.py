"""What the queue and the clock ask of wrap-ups."""

from __future__ import annotations

import asyncio
import logging
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
def do_owed_work(job: str) -> None:
    """Do one piece of work owed for a closed session; put it back on the queue for later where that makes sense."""
    scope = current_scope()
    outcome = asyncio.run(makers.do(UUID(job), scope))
    if isinstance(outcome, Later):
        nudge(UUID(job), scope, seconds=outcome.seconds)


def do_what_was_missed(run: Recorded) -> None:
    """A step of the daily run: owed work that nobody is at."""
    backfill.do(run, later=nudge)


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def hand_over() -> int:
    """Hand over what is due to the external memory, and delete there what was deleted here; how many."""
    return asyncio.run(carrier.carry())


def nudge(job: UUID, scope: Scope, *, seconds: float = 0) -> None:
    """Put the job on the queue. Never raises: the row is there, and the backfill finds it without the queue."""
    try:
        do_owed_work.apply_async(
            (str(job),),
            {"tenant": str(scope.tenant_id), "customer": str(scope.customer_id)},
            countdown=seconds or None,
            retry=False,
        )
    except Exception as error:
        logger.warning(
            "the queue takes nothing (%s): job %s waits for the backfill", type(error).__name__, job
        )
