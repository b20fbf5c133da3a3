"""The events of a Messages API stream as our deltas."""

from __future__ import annotations

import json
from collections.abc import Iterator

from anthropic.types import (
    MessageDeltaUsage,
    RawContentBlockDelta,
    RawMessageStreamEvent,
)
from anthropic.types import (
    Usage as GivenUsage,
)
from anthropic.types.raw_content_block_start_event import ContentBlock

from memberintel.llm.backends.anthropic.asking import stamp
from memberintel.llm.backends.base import RawDelta, UsageSoFar
from memberintel.llm.errors import InvalidOutput, Refused
from memberintel.llm.types import (
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)

_STOPS: dict[str, StopReason] = {
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
}


class Reading:
    """One answer as it comes in. `finished` is there once the provider said why it stopped."""

    def __init__(self, provider: str, asked: str) -> None:
        self._provider, self._asked, self._model = provider, asked, asked
        self._usage = Usage()
        self._call: tuple[str, str] | None = None
        self._arguments: list[str] = []
        self._signature: list[str] = []
        self.finished: Finished | None = None

    def take(self, event: RawMessageStreamEvent) -> Iterator[RawDelta]:
        """What this event adds. Refused when the model declines, InvalidOutput for arguments that are no JSON."""
        if event.type == "message_start":
            self._model = event.message.model or self._asked
            self._usage = _usage(event.message.usage, Usage(), output=0)
            yield UsageSoFar(self._usage)
        elif event.type == "content_block_start":
            yield from self._begun(event.content_block)
        elif event.type == "content_block_delta":
            yield from self._went_on(event.delta)
        elif event.type == "content_block_stop":
            yield from self._ended()
        elif event.type == "message_delta":
            self._usage = _usage(event.usage, self._usage, output=event.usage.output_tokens)
            yield UsageSoFar(self._usage)
            self._stop(event.delta.stop_reason)

    def _begun(self, block: ContentBlock) -> Iterator[RawDelta]:
        self._call, self._arguments, self._signature = None, [], []
        if block.type == "text" and block.text:
            yield TextDelta(block.text)
        elif block.type == "thinking" and block.thinking:
            yield ReasoningDelta(block.thinking)
        elif block.type == "redacted_thinking":
            yield ReasoningDelta("", stamp(self._asked, "redacted", block.data))
        elif block.type == "tool_use":
            self._call = (block.id, block.name)

    def _went_on(self, delta: RawContentBlockDelta) -> Iterator[RawDelta]:
        if delta.type == "text_delta":
            yield TextDelta(delta.text)
        elif delta.type == "thinking_delta":
            yield ReasoningDelta(delta.thinking)
        elif delta.type == "signature_delta":
            self._signature.append(delta.signature)
        elif delta.type == "input_json_delta":
            self._arguments.append(delta.partial_json)

    def _ended(self) -> Iterator[RawDelta]:
        if self._signature:
            yield ReasoningDelta("", stamp(self._asked, "thinking", "".join(self._signature)))
        if self._call is not None:
            yield ToolCallDelta(ToolCall(*self._call, _object("".join(self._arguments) or "{}")))
        self._call, self._signature = None, []

    def _stop(self, reason: str | None) -> None:
        if reason is None:
            return
        if reason == "refusal":
            raise Refused(reason="refusal")
        self.finished = Finished(_STOPS.get(reason, "end"), self._usage, self._model, self._provider)


def _object(text: str) -> str:
    """The text, if it is a JSON object."""
    try:
        good = isinstance(json.loads(text), dict)
    except ValueError:
        good = False
    if not good:
        raise InvalidOutput(reason="tool arguments")
    return text


def _usage(given: GivenUsage | MessageDeltaUsage, before: Usage, *, output: int) -> Usage:
    """What is reported; a number that is left out stands as it was reported before."""
    return Usage(
        _or(given.input_tokens, before.input_tokens),
        output,
        _or(given.cache_read_input_tokens, before.cached_tokens),
        _or(given.cache_creation_input_tokens, before.cache_write_tokens),
    )


def _or(value: int | None, before: int) -> int:
    return before if value is None else value
