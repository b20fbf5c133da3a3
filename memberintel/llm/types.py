"""What goes to a model and what comes back, in terms of no provider. Plain values, free of Django.

Texts are left out of every `repr`, so that a value that ends up in a log line or a traceback carries none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from memberintel.lib import tokens

Role = Literal["user", "assistant"]
StopReason = Literal["end", "tool_calls", "max_tokens"]

# What a message costs beside its text (role and separators), as a rough figure for estimates.
MESSAGE_OVERHEAD_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool offered to the model. `schema` is the exact JSON text of the schema of its arguments."""

    name: str
    description: str = field(repr=False)
    schema: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `arguments` is the exact JSON text it wrote.

    `signature` is what a provider wants back verbatim with the call in the rounds that follow; else empty.
    """

    id: str
    name: str
    arguments: str = field(repr=False)
    signature: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to the call `call_id`; `error` when it failed."""

    call_id: str
    content: str = field(repr=False)
    error: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A finished block of reasoning, kept because some providers want it back inside the same turn."""

    text: str = field(repr=False)
    signature: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Calls and reasoning stand in the assistant's messages, results in the user's."""

    role: Role
    text: str = field(repr=False)
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A whole request: system sections in order, tool definitions, messages."""

    system: tuple[str, ...] = field(repr=False)
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()

    def wire(self) -> bytes:
        """The request as canonical bytes: one line of JSON for the system, one for the tools, one a message.

        A prompt that differs from another only by further messages has the other's wire as a byte prefix;
        that is what a provider's prompt cache rewards, and what the tests of the projections compare.
        """
        return b"".join(_line(record) for record in self._records())

    def digest(self) -> str:
        """SHA-256 of the wire, in hex."""
        return hashlib.sha256(self.wire()).hexdigest()

    def estimate(self) -> int:
        """Tokens of the whole request, counted with `o200k_base`; what a provider counts is in the ledger."""
        return sum(tokens.count(text) for text in self._texts()) + MESSAGE_OVERHEAD_TOKENS * len(
            self.messages
        )

    def followed_by(self, *messages: Message) -> Prompt:
        """The same prompt with further messages at its end."""
        return Prompt(self.system, self.messages + messages, self.tools)

    def _records(self) -> Iterator[dict[str, object]]:
        yield {"system": list(self.system)}
        yield {"tools": [[tool.name, tool.description, tool.schema] for tool in self.tools]}
        for message in self.messages:
            yield {
                "role": message.role,
                "text": message.text,
                "reasoning": [[block.text, block.signature] for block in message.reasoning],
                "calls": [[call.id, call.name, call.arguments, call.signature] for call in message.calls],
                "results": [[result.call_id, result.content, result.error] for result in message.results],
            }

    def _texts(self) -> Iterator[str]:
        yield from self.system
        for tool in self.tools:
            yield f"{tool.name}\n{tool.description}\n{tool.schema}"
        for message in self.messages:
            yield message.text
            yield from (block.text for block in message.reasoning)
            yield from (f"{call.name} {call.arguments}" for call in message.calls)
            yield from (result.content for result in message.results)


def _line(record: dict[str, object]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counted them.

    `input_tokens` are those neither read from nor written to the provider's prompt cache; the four add up to
    the whole of what was processed. Reasoning counts as output.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the answer."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A further piece of reasoning. A `signature` ends the block and belongs to all of its pieces."""

    text: str = field(repr=False)
    signature: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A tool call, whole: it is given out when its arguments have arrived completely."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Finished:
    """The last delta of an answer that came to its end. An answer without one raised an error."""

    stop_reason: StopReason
    usage: Usage
    model: str
    provider: str


Delta = TextDelta | ReasoningDelta | ToolCallDelta | Finished


@dataclass(frozen=True, slots=True)
class Completion[T]:
    """A whole answer. `output` is there exactly when a shape for it was asked for."""

    text: str = field(repr=False)
    output: T | None = field(repr=False)
    usage: Usage
    model: str
    provider: str
    stop_reason: StopReason


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector for each text asked for, in order, all of the same length."""

    vectors: tuple[tuple[float, ...], ...] = field(repr=False)
    usage: Usage
    model: str
    provider: str
