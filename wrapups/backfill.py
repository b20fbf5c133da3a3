"""Finds owed work that nobody is at, and does it. Safe to run twice at once, safe to kill."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

from django.conf import settings

from memberintel.lib import clock
from memberintel.tenancy.context import SYSTEM, Scope
from memberintel.tenancy.unit import unit
from memberintel.usage import runs
from memberintel.usage.runs import Recorded
from wrapups import jobs, makers
from wrapups.work import Later

KIND: Final = "wrap_up_backfill"
_PAGE = 200
_AT_ONCE = 6
_Due = tuple[UUID, UUID, UUID]  # job, tenant, customer


class Nudge(Protocol):
    """Puts jobs of a customer on the queue, to be tried in so many seconds."""

    def __call__(self, jobs: Sequence[UUID], scope: Scope, *, seconds: float) -> None: ...


def run(
    *, later: Nudge, at_once: bool = False, progress: Callable[[int, int], None] | None = None
) -> dict[str, int] | None:
    """As `do`, recorded as a run; its counts, or None when another run is at work."""
    try:
        with runs.recorded(KIND) as recorded:
            do(recorded, later=later, at_once=at_once, progress=progress)
            return dict(recorded.counts)
    except runs.AtWork:
        return None


def do(
    run: Recorded,
    *,
    later: Nudge,
    at_once: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write everything that is due, counting in `run`.

    Due is what is queued for longer than the setting says with a free lease, or with `at_once` for however
    long, what has failed and has daily tries left, and what found no budget within the last days. `progress` gets
    (done, total).
    """
    asyncio.run(_run(run, later, at_once, progress or _silent))


def _silent(done: int, total: int) -> None:
    """Nobody is watching."""


async def _run(run: Recorded, later: Nudge, at_once: bool, progress: Callable[[int, int], None]) -> None:
    began = clock.now()
    age = 0 if at_once else settings.WRAP_UP_BACKFILL_AFTER_SECONDS
    due = jobs.Due(tuple(makers.MAKERS), began - timedelta(seconds=age), began)
    total = await unit(SYSTEM, due.count)
    run.count("due", total)
    past: UUID | None = None
    while page := await unit(SYSTEM, due.page, past, _PAGE):
        await _write_all(page, later, run, lambda: progress(_done(run.counts), total))
        past = page[-1][0]


async def _write_all(page: list[_Due], later: Nudge, run: Recorded, progressed: Callable[[], None]) -> None:
    """A page of jobs, a few at a time."""
    waiting = iter(page)

    async def work() -> None:
        for job, tenant, customer in waiting:
            scope = Scope(tenant, customer)
            run.count(await _write(job, scope, later))
            progressed()

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())


async def _write(job: UUID, scope: Scope, later: Nudge) -> str:
    outcome = await makers.do(job, scope)
    if isinstance(outcome, Later):
        await asyncio.to_thread(later, [job], scope, seconds=outcome.seconds)
    return type(outcome).__name__.lower()


def _done(counts: Counter[str]) -> int:
    return counts.total() - counts["due"]
