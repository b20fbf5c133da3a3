"""The one fold both projections stand on: events in, turns out.

A turn is a user message and what became of its answer. Since the model's view and the transcript are both
made from these turns, they cannot disagree on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sessions.domain import events as kinds
from sessions.domain.events import Event, ToolTraffic


@dataclass(slots=True)
class Attempt:
    """One try at an answer: its deltas, and its end if it has one."""

    number: int
    pending: list[Event] = field(default_factory=list)
    answer: Event | None = None
    failures: list[Event] = field(default_factory=list)

    def text(self) -> str:
        """The text so far."""
        return _joined(self, "text")

    def reasoning(self) -> str:
        """The reasoning so far."""
        return _joined(self, "reasoning")

    def tools(self) -> list[ToolTraffic]:
        """The calls so far, each once, in the order they began."""
        if self.answer is not None:
            return kinds.tools_of(self.answer)
        return _merged(call for event in self.pending for call in kinds.tools_of(event))

    def events(self) -> list[Event]:
        """Everything this attempt wrote, in the order of the log."""
        written = [*self.pending, *self.failures]
        if self.answer is not None:
            written.append(self.answer)
        return sorted(written, key=lambda event: event.seq)


def _joined(attempt: Attempt, key: str) -> str:
    if attempt.answer is not None:
        return kinds.text_of(attempt.answer, key)
    return "".join([kinds.text_of(event, key) for event in attempt.pending])


def _merged(calls: Iterable[ToolTraffic]) -> list[ToolTraffic]:
    """A call flushed while it ran is flushed again with its result: the later one takes its place.

    Only a running one is replaced, so that a model which reuses ids loses no call.
    """
    merged: list[ToolTraffic] = []
    running: dict[str, int] = {}
    for call in calls:
        place = running.pop(call["id"], None)
        if place is None:
            place = len(merged)
            merged.append(call)
        else:
            merged[place] = call
        if call.get("result") is None and not call.get("error"):
            running[call["id"]] = place
    return merged


@dataclass(slots=True)
class Turn:
    """A question (absent when an imported conversation has an answer to none) and its attempts.

    `newest` is the last event that names the turn, of whatever kind.
    """

    id: UUID | None
    newest: Event
    question: Event | None = None
    recall: Event | None = None
    answer: Event | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)

    def latest(self) -> Attempt | None:
        """The attempt with the highest number that wrote anything."""
        return self.attempts[max(self.attempts)] if self.attempts else None


def fold(events: Sequence[Event]) -> list[Turn]:
    """The turns of these events, in order. One pass; unknown kinds, and kinds of no turn, are passed over."""
    turns: list[Turn] = []
    by_id: dict[UUID | None, Turn] = {}
    for event in events:
        kind = event.kind
        turn = by_id.get(event.turn)
        if kind in kinds.TURN_KINDS and kinds.known(event):
            if turn is None or _begins(turn, event):
                turn = by_id[event.turn] = Turn(event.turn, newest=event)
                turns.append(turn)
            turn.newest = event
            _take(turn, event)
        elif turn is not None and event.turn is not None:
            turn.newest = event
            if kind == kinds.RECALL:
                _recall(turn, event)
    return turns


def _begins(turn: Turn, event: Event) -> bool:
    """Whether the event starts another turn although its id has one: the log never drops what was said."""
    if event.kind == kinds.USER_MESSAGE:
        return True
    return event.kind == kinds.ASSISTANT_TURN and turn.answer is not None


def _recall(turn: Turn, event: Event) -> None:
    # The first one counts: a request with it may have gone out, and a retry must send the same bytes.
    if turn.recall is None and kinds.known(event):
        turn.recall = event


def _take(turn: Turn, event: Event) -> None:
    if event.kind == kinds.USER_MESSAGE:
        turn.question = event
        return
    attempt = turn.attempts.get(event.attempt)
    if attempt is None:
        attempt = turn.attempts[event.attempt] = Attempt(event.attempt)
    if event.kind == kinds.PENDING_STATE:
        attempt.pending.append(event)
    elif event.kind == kinds.TURN_FAILED:
        attempt.failures.append(event)
    else:
        attempt.answer = turn.answer = event
