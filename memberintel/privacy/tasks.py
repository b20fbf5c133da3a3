"""What goes on after whoever asked for it has gone."""

from __future__ import annotations

import logging

from celery import shared_task

from memberintel.privacy import erase
from memberintel.tenancy.tasks import SystemTask

logger = logging.getLogger(__name__)


def nudge() -> None:
    """Have what was begun done soon. Never raises: the clock goes on with it too."""
    try:
        go_on_erasing.apply_async(retry=False)
    except Exception as error:
        logger.warning("the queue takes nothing (%s): the erasure waits for the clock", type(error).__name__)


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def go_on_erasing() -> None:
    """Do what is left of every erasure that was begun. One that breaks does not hold up the others."""
    for erasure in erase.unfinished():
        try:
            erase.proceed(erasure)
        except Exception as error:
            logger.error("an erasure broke: %s", type(error).__name__)
