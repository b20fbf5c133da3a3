"""The daily run: the steps of `DAILY_STEPS`, one after the other, each a run of its own.

The clock calls it every quarter of an hour; a step is due until it has ended well once since 03:00 UTC. So a day
on which nothing ran, a step that broke and one whose process was killed are made good at the next call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from traceback import format_tb

from django.conf import settings
from django.utils.module_loading import import_string

from memberintel.lib import clock
from memberintel.usage import runs
from memberintel.usage.models import Run

HOUR = 3  # UTC
TRIES = 3  # a day; a step that keeps breaking waits for tomorrow, or for `daily --now`

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """What became of a step: what it counted, and the type of its exception or "". `at_work`: by another process."""

    kind: str
    counts: dict[str, int]
    error: str = ""
    at_work: bool = False


def run(*, at_once: bool = False) -> Iterator[Step]:
    """Do the steps that are due, or with `at_once` all; each as it ends. One that breaks does not stop the others."""
    for kind, path in settings.DAILY_STEPS.items():
        if wanted(kind) and (at_once or due(kind, clock.now())):
            yield _do(kind, path)


def wanted(kind: str) -> bool:
    """Whether the step is switched on."""
    where = settings.DAILY_STEPS_WHERE.get(kind)
    return where is None or bool(import_string(where)())


def due(kind: str, now: datetime) -> bool:
    """Whether the step has still to end well since the last 03:00 UTC, and has a try left."""
    tries = list(
        Run.objects.filter(kind=kind, started_at__gte=began(now)).values_list("finished_at", "error")[:TRIES]
    )
    done = any(finished and not error for finished, error in tries)
    return not done and len(tries) < TRIES


def began(now: datetime) -> datetime:
    """The last 03:00 UTC."""
    today = datetime.combine(now.astimezone(UTC).date(), time(HOUR), UTC)
    return today if today <= now else today - timedelta(days=1)


def _do(kind: str, path: str) -> Step:
    counts: dict[str, int] = {}
    try:
        with runs.recorded(kind) as run:
            try:
                import_string(path)(run)
            finally:
                counts.update(run.counts)
    except runs.AtWork:
        return Step(kind, {}, at_work=True)
    except Exception as error:
        # Type and places alone: an exception's text may quote what a person wrote.
        places = "".join(format_tb(error.__traceback__))
        logger.error("the daily step %s broke: %s\n%s", kind, type(error).__name__, places)
        return Step(kind, counts, runs.named(error))
    return Step(kind, counts)
