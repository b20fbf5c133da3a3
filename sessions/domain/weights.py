"""What each part of a request weighs, in estimated tokens, from the counts its events carry.

Counted once, when an event is written: a turn adds numbers up and reads no text again. Where an event has no
count (it was written by an earlier release) its text is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from memberintel.lib import tokens
from memberintel.llm.types import MESSAGE_OVERHEAD_TOKENS, Prompt, Tool
from sessions.domain import events as kinds
from sessions.domain import marks, projection, turn_memory
from sessions.domain.events import Event, Section, SectionDigest
from sessions.domain.turns import Turn

LINE_TOKENS: Final = 16
"""A fixed line of ours, or the joint between two texts; a little more than the longest takes."""

BYTES_A_TOKEN: Final = 3
"""For the residue of tools, which is short and of bounded length: rough and on the safe side."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The request these events make, part by part. `sections` are those of the system prompt, by name.

    `turns` are the live ones in order; the last one includes `message` and `recall`, which are its own.
    `pending` is what the running answer has so far (its tool rounds), when the request carries it.
    """

    sections: tuple[tuple[str, int], ...] = ()
    tools: int = 0
    summary: int = 0
    turns: tuple[int, ...] = ()
    message: int = 0
    recall: int = 0
    pending: int = 0

    @property
    def total(self) -> int:
        """Tokens of the whole request."""
        system = sum(weight for _, weight in self.sections)
        return system + self.tools + self.summary + sum(self.turns) + self.pending


def weigh(events: Sequence[Event], pending: int = 0) -> Weights:
    """The weights of `projection.provider_prompt(events)`, and of `pending` tokens after it."""
    summary = projection.newest_compaction(events)
    turns = projection.live_turns(events)
    last = turns[-1] if turns else None
    return Weights(
        sections=_sections(projection.prompt_event(events)),
        tools=_tools(projection.tools_offered(events)),
        summary=0 if summary is None else _summary(summary),
        turns=(*(_turn(turn) for turn in turns[:-1]), *(_last(turn) for turn in turns[-1:])),
        message=0 if last is None else _question(last),
        recall=0 if last is None else _recall(last),
        pending=pending,
    )


def turn_weight(turn: Turn) -> int:
    """Tokens of a turn that is over, without what was recalled for it."""
    return _question(turn) + _answer(turn)


def summary_weight(summary: str, method: str) -> int:
    """Tokens a summary takes in a request, with everything around it."""
    text = projection.summary_text(summary, method)
    return tokens.count(text) + LINE_TOKENS + 2 * MESSAGE_OVERHEAD_TOKENS


def part_weights(parts: Iterable[tuple[str, str, str]]) -> list[SectionDigest]:
    """(name, digest, text) of rendered parts as an event names them, each with its weight."""
    return [
        SectionDigest(name=name, digest=digest, tokens=tokens.count(text) + 1) for name, digest, text in parts
    ]


# --- one by one ------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _tools(tools: tuple[Tool, ...]) -> int:
    return Prompt((), (), tools).estimate()


def _summary(event: Event) -> int:
    stored = event.payload.get("tokens")
    if stored is not None:
        return int(stored)
    return summary_weight(kinds.text_of(event, "summary"), str(event.payload.get("method")))


def _sections(event: Event | None) -> tuple[tuple[str, int], ...]:
    if event is None:
        return ()
    named: list[Any] = list(event.payload.get("sections") or ())
    weights: dict[str, int] = {}
    if all("tokens" in section for section in named):
        for section in named:
            weights[section["name"]] = weights.get(section["name"], 0) + int(section["tokens"])
    else:
        for filled in kinds.sections_of(event):
            weights[filled["name"]] = weights.get(filled["name"], 0) + tokens.count(_text(filled))
    return tuple(weights.items())


def _text(section: Section) -> str:
    text = section["text"]
    return marks.removed_section(section["name"]) if text is None else text


def _turn(turn: Turn) -> int:
    return turn_weight(turn) + _recall(turn)


def _last(turn: Turn) -> int:
    """Unanswered, it is the message alone."""
    if turn.answer is not None:
        return _turn(turn)
    return 0 if turn.question is None else _question(turn) + _recall(turn)


def _question(turn: Turn) -> int:
    said = LINE_TOKENS if turn.question is None else _said(turn.question)
    return said + MESSAGE_OVERHEAD_TOKENS


def _recall(turn: Turn) -> int:
    return 0 if turn.recall is None else sum(weight + 1 for _, weight in _sections(turn.recall))


def _answer(turn: Turn) -> int:
    return MESSAGE_OVERHEAD_TOKENS + (_cut_off(turn) if turn.answer is None else _ended(turn.answer))


def _ended(answer: Event) -> int:
    memory = turn_memory.render(turn_memory.of_content(answer.content))
    mark = LINE_TOKENS if answer.payload.get("outcome") == "stopped" else 0
    return _said(answer) + mark + _rough(memory)


def _cut_off(turn: Turn) -> int:
    latest = turn.latest()
    if latest is None:
        return LINE_TOKENS
    traffic = [call for attempt in turn.attempts.values() for call in attempt.tools()]
    memory = turn_memory.render(turn_memory.compute(traffic)) if traffic else ""
    return sum(_said(event) for event in latest.pending) + LINE_TOKENS + _rough(memory)


def _said(event: Event) -> int:
    """The stored count; never less than the fixed line that may stand for the text."""
    stored = event.payload.get("tokens")
    count = tokens.count(kinds.text_of(event)) if stored is None else int(stored)
    return count if kinds.text_of(event).strip() else max(count, LINE_TOKENS)


def _rough(text: str) -> int:
    return len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN + 2 if text else 0
