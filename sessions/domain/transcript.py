"""What a person sees of a session: everything in its log, in order, as typed items.

Every event belongs to exactly one item, so nothing is hidden: deltas and the answer they became are one
item, an attempt that was cut off or failed keeps its own, and an event this code does not know is shown as
such. Templates choose by `item.kind`; `item.seq` is the place in the log that links point to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal
from uuid import UUID

from sessions.domain import events as kinds
from sessions.domain import turn_memory
from sessions.domain.events import Event
from sessions.domain.turn_memory import TurnMemory
from sessions.domain.turns import Attempt, Turn, fold

State = Literal["complete", "stopped", "interrupted", "failed", "running"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item stands: the number, id and time of its first event."""

    seq: int
    id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class OpenedItem(Place):
    """The session began."""

    kind: ClassVar[str] = "opened"
    off_record: bool
    imported: bool
    continues: UUID | None


@dataclass(frozen=True, slots=True)
class MessageItem(Place):
    """What the customer wrote."""

    kind: ClassVar[str] = "message"
    turn: UUID | None
    text: str
    readable: bool


@dataclass(frozen=True, slots=True)
class ToolItem:
    """A call with its arguments and what came back, as exact texts; `result` is None if nothing did."""

    id: str
    name: str
    arguments: str
    result: str | None
    error: bool


@dataclass(frozen=True, slots=True)
class AnswerItem(Place):
    """One attempt at an answer.

    `state`: `complete`, `stopped` (by the customer), `interrupted` (cut off; what was saved is here),
    `failed` (`error_code` and `error_text` say how), `running`. `may_retry` is true of the last turn's latest
    attempt only. `seqs` are the events it is made of; () when the attempt has written nothing, and then it
    stands at the turn's newest event, after that one's own item.
    """

    kind: ClassVar[str] = "answer"
    turn: UUID | None
    attempt: int
    state: State
    text: str
    reasoning: str
    tools: tuple[ToolItem, ...]
    memory: TurnMemory
    error_code: str
    error_text: str
    may_retry: bool
    imported: bool
    model: str
    provider: str
    readable: bool
    seqs: tuple[int, ...]

    @property
    def is_running(self) -> bool:
        """Whether it is being written at this moment."""
        return self.state == "running"


@dataclass(frozen=True, slots=True)
class SectionItem:
    """A section of a prompt or a recall; `text` is None when it was removed, on `removed_on`."""

    name: str
    text: str | None
    removed_on: str | None


@dataclass(frozen=True, slots=True)
class PromptItem(Place):
    """What the advisor was told at the start of the session, or anew (`refreshed`); `late` when something of what
    it should have recalled did not come in time."""

    kind: ClassVar[str] = "prompt"
    refreshed: bool
    late: bool
    sections: tuple[SectionItem, ...]


@dataclass(frozen=True, slots=True)
class RecallItem(Place):
    """What was recalled for a message; `late` when it did not come in time."""

    kind: ClassVar[str] = "recall"
    turn: UUID | None
    late: bool
    sections: tuple[SectionItem, ...]


@dataclass(frozen=True, slots=True)
class CompactionItem(Place):
    """From here on the advisor sees `summary` in place of everything up to `through`."""

    kind: ClassVar[str] = "compaction"
    summary: str
    method: str
    through: int
    tokens_before: int
    tokens_after: int
    readable: bool


@dataclass(frozen=True, slots=True)
class ClosedItem(Place):
    """The session ended: why, and by whom."""

    kind: ClassVar[str] = "closed"
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class UnknownItem(Place):
    """An event of a kind or version this code does not know."""

    kind: ClassVar[str] = "unknown"
    name: str
    payload: Mapping[str, Any]
    content: Mapping[str, Any]


Item = (
    OpenedItem
    | MessageItem
    | AnswerItem
    | PromptItem
    | RecallItem
    | CompactionItem
    | ClosedItem
    | UnknownItem
)


def ui_transcript(
    events: Sequence[Event],
    running: UUID | None = None,
    attempt: int | None = None,
    *,
    to_the_end: bool = True,
) -> list[Item]:
    """All of the log as items, in its order; or a part of it that cuts no turn, which may not reach `to_the_end`.

    `running` is the turn whose lease is alive, `attempt` its number (default: the latest that wrote
    anything and has not ended).
    """
    items = [item for event in events if (item := _standing_alone(event)) is not None]
    turns = fold(events)
    closed = any(event.kind == kinds.SESSION_CLOSED for event in events)
    for turn in turns:
        alive = running is not None and turn.id == running
        last = to_the_end and turn is turns[-1] and not closed
        items += _turn(turn, alive=alive, attempt=attempt if alive else None, last=last)
    items.sort(key=lambda item: item.seq)  # stable: what has written nothing stands after its neighbour
    return items


# --- items of one event ----------------------------------------------------------------------------------


def _standing_alone(event: Event) -> Item | None:
    """The item of an event that is not part of a turn's words."""
    if not kinds.known(event):
        return UnknownItem(event.seq, event.id, event.at, event.kind, event.payload, event.content)
    make = _MAKERS.get(event.kind)
    return None if make is None else make(event)


def _opened(event: Event) -> OpenedItem:
    payload = event.payload
    continues = payload.get("continues")
    return OpenedItem(
        event.seq,
        event.id,
        event.at,
        off_record=bool(payload.get("off_record")),
        imported=bool(payload.get("imported")),
        continues=UUID(str(continues)) if continues else None,
    )


def _prompt(event: Event) -> PromptItem:
    refreshed = event.kind == kinds.PROMPT_REFRESHED
    late = bool(event.payload.get("late"))
    return PromptItem(
        event.seq, event.id, event.at, refreshed=refreshed, late=late, sections=_sections(event)
    )


def _recall(event: Event) -> RecallItem:
    late = bool(event.payload.get("late"))
    return RecallItem(event.seq, event.id, event.at, turn=event.turn, late=late, sections=_sections(event))


def _compaction(event: Event) -> CompactionItem:
    payload = event.payload
    return CompactionItem(
        event.seq,
        event.id,
        event.at,
        summary=kinds.text_of(event, "summary"),
        method=str(payload.get("method", "model")),
        through=int(payload.get("replaces_through_seq", 0)),
        tokens_before=int(payload.get("tokens_before", 0)),
        tokens_after=int(payload.get("tokens_after", 0)),
        readable=kinds.readable(event),
    )


def _closed(event: Event) -> ClosedItem:
    reason, by = str(event.payload.get("reason", "")), str(event.payload.get("by", ""))
    return ClosedItem(event.seq, event.id, event.at, reason=reason, by=by)


_MAKERS: Mapping[str, Callable[[Event], Item]] = {
    kinds.SESSION_OPENED: _opened,
    kinds.CONTEXT_FROZEN: _prompt,
    kinds.PROMPT_REFRESHED: _prompt,
    kinds.RECALL: _recall,
    kinds.COMPACTION_APPLIED: _compaction,
    kinds.SESSION_CLOSED: _closed,
}


def _sections(event: Event) -> tuple[SectionItem, ...]:
    return tuple(
        SectionItem(section["name"], section["text"], section.get("removed_on"))
        for section in kinds.sections_of(event)
    )


# --- items of a turn -------------------------------------------------------------------------------------


def _turn(turn: Turn, *, alive: bool, attempt: int | None, last: bool) -> Iterator[Item]:
    if turn.question is not None:
        event = turn.question
        text, readable = kinds.text_of(event), kinds.readable(event)
        yield MessageItem(event.seq, event.id, event.at, turn=turn.id, text=text, readable=readable)
    going = _going(turn, attempt) if alive and turn.answer is None else None
    newest = max(turn.attempts, default=0)
    for number in sorted(turn.attempts):
        retry = last and going is None and number == newest
        yield _answer(turn, turn.attempts[number], running=number == going, may_retry=retry)
    if turn.answer is None and (going or not turn.attempts) and going not in turn.attempts:
        retry = last and going is None
        yield _answer(turn, Attempt(going or 1), running=going is not None, may_retry=retry)


def _going(turn: Turn, attempt: int | None) -> int:
    """The number of the attempt that is running."""
    if attempt is not None:
        return attempt
    latest = turn.latest()
    if latest is None:
        return 1
    return latest.number + 1 if latest.failures else latest.number


def _answer(turn: Turn, attempt: Attempt, *, running: bool, may_retry: bool) -> AnswerItem:
    written = attempt.events()
    place = written[0] if written else turn.newest
    state = _state(attempt, running=running)
    failure = attempt.failures[-1] if attempt.failures else None
    retryable = failure is None or bool(failure.payload.get("retryable"))
    payload: Mapping[str, Any] = attempt.answer.payload if attempt.answer else {}
    return AnswerItem(
        place.seq,
        place.id,
        place.at,
        turn=turn.id,
        attempt=attempt.number,
        state=state,
        text=attempt.text(),
        reasoning=attempt.reasoning(),
        tools=_tools(attempt),
        memory=_memory(attempt, running=running),
        error_code=str(failure.payload.get("code", "")) if failure else "",
        error_text=kinds.text_of(failure, "message") if failure else "",
        may_retry=may_retry and retryable and state in ("failed", "interrupted"),
        imported=bool(payload.get("imported")),
        model=str(payload.get("model") or ""),
        provider=str(payload.get("provider") or ""),
        readable=all(kinds.readable(event) for event in written),
        seqs=tuple(event.seq for event in written),
    )


def _state(attempt: Attempt, *, running: bool) -> State:
    if attempt.answer is not None:
        return "stopped" if attempt.answer.payload.get("outcome") == "stopped" else "complete"
    if attempt.failures:
        return "failed"
    return "running" if running else "interrupted"


def _tools(attempt: Attempt) -> tuple[ToolItem, ...]:
    return tuple(
        ToolItem(call["id"], call["name"], call["arguments"], call.get("result"), bool(call.get("error")))
        for call in attempt.tools()
    )


def _memory(attempt: Attempt, *, running: bool) -> TurnMemory:
    if attempt.answer is not None:
        return turn_memory.of_content(attempt.answer.content)
    return turn_memory.EMPTY if running else turn_memory.compute(attempt.tools())
