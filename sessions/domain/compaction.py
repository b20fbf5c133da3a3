"""When the older part of a conversation gives way to a summary, and how much of it: decided with values.

`plan` looks at the live part of a log and says what is to be done; `sessions.compactor` does it. A summary
covers what the one before it covered, and what it covers ends where a turn begins: no message is parted from
its answer, no call from its result, and the last turn always stays word for word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memberintel.lib import tokens
from memberintel.lib.extract import Extract, Line, extract
from memberintel.lib.text import clean
from memberintel.llm.types import StopReason
from sessions.domain import events as kinds
from sessions.domain import marks, projection, weights
from sessions.domain.events import Event
from sessions.domain.turns import Turn, fold
from sessions.domain.weights import Weights

PASSES: Final = 3
"""Most compactions of one turn."""

SUMMARY_TOKENS: Final = 2_000
"""What a summary is asked to stay within, however much it stands for."""

LEAST_SUMMARY_TOKENS: Final = 60
LINE_OVERHEAD_TOKENS: Final = 12


@dataclass(frozen=True, slots=True)
class Limits:
    """In tokens. Above `line` a compaction is due; a request above `full` is not sent."""

    line: int
    full: int


@dataclass(frozen=True, slots=True)
class Fits:
    """Nothing is to be done, or nothing more can be and the request may still be sent."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A summary is to stand for everything up to `through`.

    `planned_from` is the number of the compaction it absorbs, `replaces` the tokens it takes the place of,
    `room` the tokens the summary should stay within.
    """

    through: int
    planned_from: int | None
    replaces: int
    room: int


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The request cannot be sent, and no summary can change that. `part` is the largest part of it."""

    part: str
    tokens: int
    total: int
    limit: int


Step = Fits | Cut | TooLarge


def plan(events: Sequence[Event], weight: Weights, limits: Limits, *, passes: int) -> Step:
    """What is to be done before a request of this weight may go out, after so many `passes` of this turn.

    `events` is the live part of a log, or all of it; `weight` what `weigh` makes of it.
    """
    if weight.total <= limits.line:
        return Fits()
    if passes < PASSES and (cut := _cut(events, weight, limits, last=passes == PASSES - 1)):
        return cut
    return Fits() if weight.total <= limits.full else too_large(weight, limits)


def too_large(weight: Weights, limits: Limits) -> TooLarge:
    """Names the largest part of a request that cannot be sent."""
    earlier = sum(weight.turns) - weight.message - weight.recall
    parts = [
        ("message", weight.message),
        ("recall", weight.recall),
        ("turns", earlier),
        ("summary", weight.summary),
        ("pending", weight.pending),
        ("tools", weight.tools),
        *weight.sections,
    ]
    part, largest = max(parts, key=lambda each: each[1])
    return TooLarge(part, largest, weight.total, limits.full)


# --- where to cut ----------------------------------------------------------------------------------------


def _cut(events: Sequence[Event], weight: Weights, limits: Limits, *, last: bool) -> Cut | None:
    turns = projection.live_turns(events)
    places = _places(turns)
    if not places:
        return None
    half = [place for place in places if place >= len(turns) // 2]
    count = half[0] if half else places[-1]
    if last:
        count = _enough(places, count, weight, limits)
    replaces = weight.summary + sum(weight.turns[:count])
    newest = projection.newest_compaction(events)
    return Cut(
        through=_first(turns[count]) - 1,
        planned_from=None if newest is None else newest.seq,
        replaces=replaces,
        room=_room(replaces, limits),
    )


def _places(turns: Sequence[Turn]) -> list[int]:
    """How many of the oldest turns may be covered: never the last one, and only where all they wrote lies
    before the first word of the next."""
    places, newest = [], 0
    for count in range(1, len(turns)):
        newest = max(newest, turns[count - 1].newest.seq)
        if newest < _first(turns[count]):
            places.append(count)
    return places


def _first(turn: Turn) -> int:
    """The number of the turn's first event."""
    if turn.question is not None:
        return turn.question.seq
    return min(event.seq for attempt in turn.attempts.values() for event in attempt.events())


def _enough(places: Sequence[int], least: int, weight: Weights, limits: Limits) -> int:
    """The last pass takes as many turns as it must, since none comes after it."""
    for count in (place for place in places if place >= least):
        replaces = weight.summary + sum(weight.turns[:count])
        if weight.total - replaces + _room(replaces, limits) <= limits.line:
            return count
    return places[-1]


def _room(replaces: int, limits: Limits) -> int:
    """A third of what it replaces, a quarter of what a request may be, and never without end."""
    return max(min(replaces // 3, limits.line // 4, SUMMARY_TOKENS), LEAST_SUMMARY_TOKENS)


# --- what is summarised ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """What a summary is made from: an earlier summary, "" if there is none to build on, and what was said since.

    `tokens` is what the lines weigh.
    """

    earlier: str
    lines: tuple[Line, ...]
    tokens: int


def source(events: Sequence[Event], *, after: int, through: int, earlier: str) -> Source:
    """The turns of the raw log with `after` < seq <= `through`, in words, to follow on the earlier summary."""
    turns = fold([event for event in events if after < event.seq <= through])
    lines: list[Line] = []
    for turn in turns:
        if turn.question is not None:
            lines.append(Line(len(lines) + 1, "customer", projection.said_by_customer(turn)))
        lines.append(Line(len(lines) + 1, "advisor", projection.said_by_advisor(turn)))
    return Source(earlier, tuple(lines), sum(map(weights.turn_weight, turns)) + LINE_OVERHEAD_TOKENS)


def needs_raw_log(newest: Event | None) -> bool:
    """Whether the newest summary is none to build on: then the stretch is summarised from the raw log anew."""
    return newest is not None and (newest.payload.get("method") != "model" or not kinds.readable(newest))


def parts(said: Source, room: int) -> list[tuple[Line, ...]]:
    """The lines in stretches of at most `room` tokens, in order; a line larger than that is cut into pieces."""
    if said.tokens + len(said.lines) * LINE_OVERHEAD_TOKENS <= room:
        return [said.lines]
    stretches: list[list[Line]] = [[]]
    left = room
    for line in said.lines:
        for piece, cost in _pieces(line, room):
            if cost > left and stretches[-1]:
                stretches.append([])
                left = room
            stretches[-1].append(piece)
            left -= cost
    return [tuple(stretch) for stretch in stretches]


def _pieces(line: Line, room: int) -> Iterator[tuple[Line, int]]:
    cost = tokens.count(line.text) + LINE_OVERHEAD_TOKENS
    if cost <= room:
        yield line, cost
        return
    length = max(len(line.text) * room // (cost * 2), 1)
    for start in range(0, len(line.text), length):
        text = line.text[start : start + length]
        yield Line(line.number, line.role, text), tokens.count(text) + LINE_OVERHEAD_TOKENS


def transcript(lines: Sequence[Line]) -> str:
    """The lines as the summariser reads them, one each; a text cannot end the transcript."""
    return "\n".join(("<transcript>", *map(_written, lines), "</transcript>"))


def _written(line: Line) -> str:
    text = marks.escape(clean(line.text))
    text = " / ".join(part for part in (each.strip() for each in text.splitlines()) if part)
    return f"[{line.number}] {line.role}: {text}"


# --- what is accepted ------------------------------------------------------------------------------------

Fault = Literal["empty", "cut off", "too long"]


def fault(summary: str, *, stop_reason: StopReason, weight: int, cut: Cut) -> Fault | None:
    """Why a summary of that weight may not take the place of what it was made from; None when it may."""
    if not summary.strip():
        return "empty"
    if stop_reason != "end":
        return "cut off"
    return None if _short_enough(weight, cut) else "too long"


def _short_enough(weight: int, cut: Cut) -> bool:
    """Shorter than what it replaces, and not twice as long as was asked for: else passes might not converge."""
    return weight < cut.replaces and weight <= 2 * cut.room


def extractive(said: Source, cut: Cut) -> str | None:
    """A summary made without a model that is shorter than what it replaces; None when there is none.

    The earlier summary stays word for word as long as that leaves room for what was said since.
    """
    words = min(cut.room, cut.replaces // 2)
    while words >= 8:
        for summary in (_after_earlier(said, words), _picked(_with_earlier(said), words)):
            if summary.strip() and _short_enough(_weight(summary), cut):
                return summary
        words //= 2
    return marks.NOTHING_PICKED if _short_enough(_weight(marks.NOTHING_PICKED), cut) else None


def _weight(summary: str) -> int:
    return weights.summary_weight(summary, "extractive")


def _after_earlier(said: Source, words: int) -> str:
    return marks.joined(said.earlier, _picked(said.lines, words))


def _with_earlier(said: Source) -> list[Line]:
    if not said.earlier:
        return list(said.lines)
    return [Line(0, "customer", said.earlier), *said.lines]


def _picked(lines: Sequence[Line], words: int) -> str:
    found = extract(lines, max_words=words)
    return marks.joined(found.summary, *_listed(found))


def _listed(found: Extract) -> Iterator[str]:
    for heading, items in (
        ("Decisions:", found.decisions),
        ("Open items:", found.open_items),
        ("Facts:", found.new_context),
    ):
        if items:
            yield "\n".join((heading, *(f"- {item.text}" for item in items)))
