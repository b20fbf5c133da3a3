"""An answer while it is being given: text, reasoning and tool traffic, round by round, and what of it is saved.

A round is one request and what came back. While the turn runs the model is shown all of its rounds, each on top
of the one before; once the turn is over only the residue stays in view (`turn_memory`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from memberintel.lib import tokens
from memberintel.lib.text import clean, encodable, shorten
from memberintel.llm.types import (
    Delta,
    Finished,
    Message,
    Prompt,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
)
from sessions.domain import events as kinds
from sessions.domain import turn_memory
from sessions.domain.events import Draft, ToolTraffic

LAST_ROUND: Final = (
    "(No more tools can be used for this answer. Answer now; say what you could not find out.)"
)
"""Stands after the results of the last round: the product's words, not the customer's."""

BETWEEN: Final = "\n\n"
"""Between what was written before a tool was used and what was written after."""

NAME_CHARACTERS: Final = 64
CHARACTERS_A_TOKEN: Final = 3  # of most texts a token has four
_UNUSUAL: Final = re.compile(r"[^a-zA-Z0-9_-]")

State = Literal["running", "done"]


@dataclass(slots=True)
class Round:
    """What came back to one request."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    blocks: list[Reasoning] = field(default_factory=list)
    _thought: str = ""

    def said(self) -> Message:
        """The round as the model's own message in the requests that follow: its reasoning as it was signed."""
        return Message("assistant", self.text, calls=tuple(self.calls), reasoning=tuple(self.blocks))

    def _think(self, delta: ReasoningDelta) -> None:
        self._thought += delta.text
        if delta.signature:  # what is not signed nobody wants back
            self.blocks.append(Reasoning(self._thought, delta.signature))
            self._thought = ""


@dataclass(slots=True)
class Answer:
    """What has been generated so far, and how much of it is saved."""

    text: str = ""
    reasoning: str = ""
    tools: list[ToolTraffic] = field(default_factory=list)
    finished: Finished | None = None
    round: Round = field(default_factory=Round)
    _saved: Mark = field(default_factory=lambda: Mark(0, 0, ()))

    def begin(self) -> Round:
        """A further request goes out."""
        self.round = Round()
        return self.round

    def take(self, delta: Delta) -> tuple[Literal["text", "reasoning"], str] | None:
        """Note what came; returns what a reader is to see of it, if anything."""
        if isinstance(delta, TextDelta):
            gap = BETWEEN if self.text.strip() and not self.round.text and delta.text else ""
            self.round.text += delta.text
            self.text += gap + delta.text
            return "text", gap + delta.text
        if isinstance(delta, ReasoningDelta):
            self.round._think(delta)
            self.reasoning += delta.text
            return "reasoning", delta.text
        if isinstance(delta, ToolCallDelta):
            self.round.calls.append(self._own(delta.call))
        elif isinstance(delta, Finished):
            self.finished = delta
        return None

    def _own(self, call: ToolCall) -> ToolCall:
        """The call under an id nobody has in this turn, spelt so that every provider takes it back."""
        used = {known["id"] for known in self.tools} | {known.id for known in self.round.calls}
        own = wanted = _spelt(call.id) or "call"
        numbers = itertools.count(2)
        while own in used:
            own = f"{wanted[: NAME_CHARACTERS - 6]}_{next(numbers)}"
        arguments = encodable(call.arguments) or "{}"
        return replace(call, id=own, name=_spelt(call.name) or "unnamed", arguments=arguments)

    def call(self) -> range:
        """The calls of the round begin; their places in `tools`."""
        first = len(self.tools)
        self.tools += [
            ToolTraffic(id=call.id, name=call.name, arguments=call.arguments, result=None, error=False)
            for call in self.round.calls
        ]
        return range(first, len(self.tools))

    def called(self, place: int, result: str, *, error: bool) -> None:
        """A call has come to its end."""
        self.tools[place] = {**self.tools[place], "result": result, "error": error}

    def results(self, places: Sequence[int], *, last: bool) -> Message:
        """What the calls brought, in their order, as the message the model goes on from."""
        brought = tuple(
            ToolResult(call["id"], call["result"] or "", bool(call["error"]))
            for call in (self.tools[place] for place in places)
        )
        return Message("user", LAST_ROUND if last else "", results=brought)

    # --- saving --------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """How far it has come at this moment."""
        states: tuple[State, ...] = tuple(
            "running" if call["result"] is None else "done" for call in self.tools
        )
        return Mark(len(self.text), len(self.reasoning), states)

    def unsaved(self, mark: Mark) -> Unsaved | None:
        """What came since the last flush, up to the mark; None when nothing did."""
        saved = self._saved
        text, reasoning = self.text[saved.text : mark.text], self.reasoning[saved.reasoning : mark.reasoning]
        before = saved.tools + (None,) * (len(mark.tools) - len(saved.tools))
        tools = [
            self.tools[place]
            for place, (was, is_) in enumerate(zip(before, mark.tools, strict=True))
            if was != is_
        ]
        if not text and not reasoning and not tools:
            return None
        return Unsaved(text, reasoning, tools)

    def saved(self, mark: Mark) -> None:
        """Everything up to the mark is durable."""
        self._saved = mark

    def ended(self, outcome: kinds.Outcome, findings: Sequence[str] = ()) -> Draft:
        """The whole answer with the residue of its tools."""
        return kinds.assistant_turn(
            text=self.text,
            outcome=outcome,
            reasoning=self.reasoning,
            tools=self.tools,
            memory=turn_memory.compute(self.tools, findings).content(),
            tokens=tokens.count(self.text),
            model=self.finished.model if self.finished else "",
            provider=self.finished.provider if self.finished else "",
        )


@dataclass(frozen=True, slots=True)
class Unsaved:
    """A piece of an answer that is to be saved."""

    text: str
    reasoning: str
    tools: list[ToolTraffic]

    def draft(self) -> Draft:
        """The piece as an event. Its tokens are counted here, which an event loop should not wait for."""
        return kinds.pending_state(
            text=self.text, reasoning=self.reasoning, tools=self.tools, tokens=tokens.count(self.text)
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """How much of an answer there was at a moment: characters, and of each call whether it had ended."""

    text: int
    reasoning: int
    tools: tuple[State, ...]


def _spelt(name: str) -> str:
    return _UNUSUAL.sub("_", name)[:NAME_CHARACTERS]


def weight(*messages: Message) -> int:
    """Tokens these messages add to a request."""
    return Prompt((), messages).estimate()


def fitted(result: str, limit: int) -> str:
    """A tool's result as it may be kept and shown: cleaned, at most about `limit` characters.

    Fewer of a script, or of signs, that costs a model more than a token for three characters: a result must not fill
    the window. What it says about documents it changed is kept whatever its length.
    """
    kept = shorten(clean(result[: limit * 2]), limit)
    while (count := tokens.count(kept)) > (most := limit // CHARACTERS_A_TOKEN):
        kept = shorten(kept, min(len(kept) * most // count, len(kept) - 1))
    changes = turn_memory.changes(result) if len(result) > limit else []
    return turn_memory.told(changes, kept) if changes else kept
