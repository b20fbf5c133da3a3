"""A log as lines of JSON, one fact a line, for machines to read. It tells no more than the log for people does."""

from __future__ import annotations

import logging
from typing import Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from memberintel.lib.discretion import PlacesOnly

bound = structlog.contextvars.bound_contextvars
"""`with bound(request=...)`: what is logged inside names it. Ids and names of ours only."""

_PLACES: Final = PlacesOnly()


def as_json() -> logging.Formatter:
    """A formatter: time, level, logger, event, and what is bound; of an exception its type and places."""
    first: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _places_only,
    ]
    last: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=first, processors=last)


def _places_only(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    told = event.pop("exc_info", None)
    if told:
        event["exception"] = _PLACES.formatException(told).splitlines()
    return event
