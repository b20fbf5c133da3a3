"""What the clock asks for."""

from __future__ import annotations

from celery import shared_task

from memberintel.tenancy.tasks import SystemTask
from memberintel.usage import daily as steps


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def daily() -> None:
    """Do those of the day's steps that are due."""
    for _ in steps.run():
        pass
