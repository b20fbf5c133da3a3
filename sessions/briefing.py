"""What the model is told for a message beside the conversation: the frozen prompt with the first one, recall with
those that follow. Written once a turn, so that another attempt at it sends the same bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings

from brain import prompt as frozen_prompt
from brain import queries as brain
from brain.domain.prompt import SectionRequest
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from sessions import log, toolbox
from sessions.domain import events as kinds
from sessions.domain import projection
from sessions.domain.events import Draft, Event
from sessions.domain.weights import part_weights
from sessions.log import Lease, Turn


@dataclass(frozen=True, slots=True)
class Briefed:
    """The live part of the log with all the model is told in it. `first` when the prompt was frozen just now."""

    events: list[Event]
    first: bool = False


async def brief(scope: Scope, session: UUID, turn: Turn, notice: Callable[[str], Awaitable[None]]) -> Briefed:
    """Freeze the prompt if it was not, else recall for the message if it was not done.

    Raises LeaseLost and SessionClosed as an append does, and CannotOpen.
    """
    events, already = await unit(scope, _live, session, turn)
    request = _request(scope, session, turn, events, notice)
    first = not any(event.kind in kinds.PROMPT_KINDS for event in events)
    if first:
        draft = await _frozen(request, off_record=_off_record(events))
    elif _recalls(events, turn):
        draft = await _recalled(replace(request, already=already))
    else:
        return Briefed(events)
    added = await unit(scope, _append, session, draft, turn, events[-1].seq)
    return Briefed(events + added, first)


def _live(session: UUID, turn: Turn) -> tuple[list[Event], frozenset[UUID]]:
    """The live part of the log, and, where recall asks for them, the sources of what the model has before it."""
    events = log.load_live(session)
    recalls = _recalls(events, turn)
    return events, brain.sources(projection.part_digests(events)) if recalls else frozenset()


def _append(session: UUID, draft: Draft, turn: Turn, after: int) -> list[Event]:
    """What the log has more than before, the draft at its end."""
    log.append(session, draft, turn=turn, lease=Lease.HOLD)
    return log.load(session, after=after)


def _recalls(events: list[Event], turn: Turn) -> bool:
    """Whether the message is to have its recall: it has none, nor was the prompt frozen for it."""
    own = {kinds.RECALL, kinds.CONTEXT_FROZEN}
    told = any(event.kind in own and event.turn == turn.id for event in events)
    return bool(settings.RECALL_SECTIONS) and not told


async def _frozen(request: SectionRequest, *, off_record: bool) -> Draft:
    built = await frozen_prompt.whole(request)
    return kinds.context_frozen(
        sections=part_weights((part.name, part.digest, part.text) for part in built.parts),
        tools=toolbox.definitions(off_record=off_record),
        late=built.late,
    )


async def _recalled(request: SectionRequest) -> Draft:
    found = await frozen_prompt.recall(request)
    sections = part_weights((part.name, part.digest, part.text) for part in found.parts)
    return kinds.recall(sections=sections, late=found.late)


def _opened(events: list[Event]) -> Event | None:
    return next((event for event in events if event.kind == kinds.SESSION_OPENED), None)


def _off_record(events: list[Event]) -> bool:
    opened = _opened(events)
    return opened is not None and bool(opened.payload.get("off_record"))


def _request(
    scope: Scope, session: UUID, turn: Turn, events: list[Event], notice: Callable[[str], Awaitable[None]]
) -> SectionRequest:
    opened = _opened(events)
    continues = opened.payload.get("continues") if opened else None
    return SectionRequest(
        tenant_id=scope.tenant_id,
        customer_id=scope.customer_id or UUID(int=0),
        session_id=session,
        continues=UUID(continues) if continues else None,
        text=message_of(events, turn.id),
        notice=notice,
    )


def message_of(events: list[Event], turn: UUID) -> str:
    """The text of the turn's message; "" where it is not among the events."""
    asked = (event for event in events if event.kind == kinds.USER_MESSAGE and event.turn == turn)
    return next((kinds.text_of(event) for event in asked), "")
