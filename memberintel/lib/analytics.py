"""Events of the product's use, without content: the one function they all go through."""

from __future__ import annotations

import json
import logging

from memberintel.lib.metrics import EVENTS

logger = logging.getLogger("memberintel.analytics")


def record(event: str, **facts: str | int | float | bool | None) -> None:
    """Note that `event` happened. `facts` are counts, codes and flags: never text a person wrote, never an id."""
    EVENTS.labels(event).inc()
    logger.info(json.dumps({"event": event, **facts}))
