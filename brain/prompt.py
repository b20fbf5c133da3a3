"""Building the system prompt of a session: every section in the order of the settings, kept in parts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from brain import actions
from brain.domain.prompt import RenderedPart, Section, SectionRequest, parts
from brain.domain.room import fitted
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import CannotOpen

logger = logging.getLogger(__name__)

RECALL_LATE = "Looking up what I remember took too long, so I answer without some of it."

SectionFunction = Callable[[SectionRequest], Awaitable[Section | None]]


@dataclass(frozen=True)
class StoredPart:
    """A part of the frozen prompt as an event names it, with its text for the projection."""

    name: str
    digest: str
    source_kind: str
    source_id: UUID | None
    text: str


async def build(request: SectionRequest) -> list[StoredPart]:
    """Render and store the system prompt for a session; `brain.domain.prompt.assemble` makes the text of it.

    Sections run one after the other, outside of any transaction, since one may wait (for the notes on the
    conversation that has just closed). An error of a section is the caller's: a prompt is never frozen with
    a hole in it.
    """
    sections = [await function(request) for function in section_functions(tuple(settings.PROMPT_SECTIONS))]
    return await _stored(request, sections)


@dataclass(frozen=True)
class Recalled:
    """What was looked up for a message; `late` when some of it did not come in time, or could not be had."""

    parts: list[StoredPart]
    late: bool = False


async def whole(request: SectionRequest) -> Recalled:
    """The system prompt with what was recalled for the message at its end: both are made at the same time."""
    recalling = asyncio.create_task(recall(request))
    try:
        built = await build(request)
        recalled = await recalling
    finally:
        recalling.cancel()
    return Recalled(built + recalled.parts, recalled.late)


async def recall(request: SectionRequest) -> Recalled:
    """The sections of `RECALL_SECTIONS` for the message, looked up side by side and stored, in that order.

    What is not there by the deadline `recall`, or fails, is left out, and the person is told. CannotOpen is the
    caller's: without the customer's key nothing may be answered.
    """
    tasks = [
        asyncio.ensure_future(function(request))
        for function in section_functions(tuple(settings.RECALL_SECTIONS))
    ]
    if not tasks:
        return Recalled([])
    try:
        await asyncio.wait(tasks, timeout=settings.TURN_DEADLINES["recall"])
        found = [_outcome(task) for task in tasks]
        if locked := next((outcome for outcome in found if isinstance(outcome, CannotOpen)), None):
            raise locked
    finally:
        for task in tasks:
            task.cancel()
    sections = [outcome for outcome in found if isinstance(outcome, Section)]
    late = any(outcome is _MISSED for outcome in found)
    if late:
        await request.notice(RECALL_LATE)
    return Recalled(await _stored(request, sections), late)


_MISSED = object()


def _outcome(task: asyncio.Future[Section | None]) -> object:
    """The section, None when there is nothing to say, _MISSED when it did not come or failed, or a CannotOpen."""
    if not task.done() or task.cancelled():
        logger.warning("recall was too late")
        return _MISSED
    error = task.exception()
    if isinstance(error, CannotOpen):
        return error
    if error is not None:
        # The type alone: an exception's text may quote what a person wrote.
        logger.error("recall failed: %s", type(error).__name__)
        return _MISSED
    return task.result()


async def _stored(request: SectionRequest, sections: Sequence[Section | None]) -> list[StoredPart]:
    rendered: list[RenderedPart] = [
        part
        for section in sections
        if section
        for part in parts(fitted(section, settings.SECTION_BUDGETS.get(section.name)))
    ]
    if not rendered:
        return []
    digests = await unit(Scope(request.tenant_id, request.customer_id), actions.store_parts, rendered)
    return [
        StoredPart(part.name, digest, part.source_kind, part.source_id, part.text)
        for part, digest in zip(rendered, digests, strict=True)
    ]


@cache
def section_functions(paths: tuple[str, ...]) -> tuple[SectionFunction, ...]:
    """The functions behind the dotted paths; ImportError names the one that is wrong."""
    return tuple(import_string(path) for path in paths)
