"""What the backfill writes in a second, with a model that answers at once, and what memory that takes."""

from __future__ import annotations

from collections.abc import Iterator

from evals.load import backfill, sessions
from evals.performance.results import Figure, at_least, at_most, plain
from memberintel.tenancy.context import scope
from memberintel.usage.models import Run
from wrapups.models import ClosingJob, JobKind, JobState

FEW, MANY = 300, 2_400


def figures() -> Iterator[Figure]:
    """A small backlog of wrap-ups and one eight times as large; then one with journal and mood."""
    _owe(FEW)
    _, little = _written(FEW)
    _owe(MANY)
    seconds, much = _written(MANY)
    yield at_least("wrap-ups the backfill writes, with an instant model", MANY / seconds, 100, "/s")
    yield plain("memory of that backfill, at most", much, "MiB")
    yield at_most(f"the same, against {FEW} waiting instead of {MANY:,}", much / little, 1.05, "x")
    _owe(FEW, whole=True)
    seconds, _ = _written(3 * FEW)
    yield plain("sessions it does with journal and mood", FEW / seconds, "/s")


def _owe(number: int, *, whole: bool = False) -> None:
    """So many sessions of which a wrap-up is owed; journal and mood only if `whole`."""
    for held in list(sessions.hold(number, sorts=("said",), tiers=("pro",))):
        if not whole:
            with scope(held.who):
                others = ClosingJob.objects.filter(session_id=held.id).exclude(kind=JobKind.WRAP_UP)
                others.update(state=JobState.DELETED)


def _written(number: int) -> tuple[float, int]:
    """(seconds, MiB at most) of a backfill, which must do so many jobs."""
    most = backfill.run()
    run = Run.objects.filter(kind="wrap_up_backfill").latest("started_at")
    if run.finished_at is None or run.counts != {"due": number, "written": number}:
        raise RuntimeError(f"the backfill counted {run.counts}")
    return (run.finished_at - run.started_at).total_seconds(), most
