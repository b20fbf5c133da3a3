"""The events of a Messages API stream as our deltas.

They are read as the JSON they come in (https://platform.claude.com/docs/en/build-with-claude/streaming): kinds of
events and blocks that are not known are passed over, as the provider asks of its clients.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memberintel.llm.backends import wire
from memberintel.llm.backends.anthropic.asking import stamp
from memberintel.llm.backends.base import RawDelta, UsageSoFar
from memberintel.llm.errors import (
    BadRequest,
    InvalidOutput,
    ModelError,
    Overloaded,
    RateLimited,
    Refused,
    TimedOut,
    Unavailable,
)
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

    def take(self, name: str | None, data: str) -> Iterator[RawDelta]:
        """What the event adds: its name, and its data as they came.

        Refused when the model declines, InvalidOutput for arguments that are no JSON, what the provider says when it
        reports an error, Unavailable for an event that is not what its name says.
        """
        try:
            yield from self._read(name, data)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise Unavailable(reason="corrupt answer") from None

    def _read(self, name: str | None, data: str) -> Iterator[RawDelta]:
        match name:
            case "content_block_delta":
                yield from self._went_on(json.loads(data)["delta"])
            case "message_start":
                message = json.loads(data)["message"]
                self._model = message.get("model") or self._asked
                self._usage = _usage(message["usage"], Usage(), output=0)
                yield UsageSoFar(self._usage)
            case "content_block_start":
                yield from self._begun(json.loads(data)["content_block"])
            case "content_block_stop":
                yield from self._ended()
            case "message_delta":
                event = json.loads(data)
                self._usage = _usage(event["usage"], self._usage, output=event["usage"]["output_tokens"])
                yield UsageSoFar(self._usage)
                self._stop(event["delta"].get("stop_reason"))
            case "error":
                raise _stream_error(data)

    def _begun(self, block: Mapping[str, Any]) -> Iterator[RawDelta]:
        self._call, self._arguments, self._signature = None, [], []
        match block["type"]:
            case "text" if block["text"]:
                yield TextDelta(block["text"])
            case "thinking" if block["thinking"]:
                yield ReasoningDelta(block["thinking"])
            case "redacted_thinking":
                yield ReasoningDelta("", stamp(self._asked, "redacted", block["data"]))
            case "tool_use":
                self._call = (block["id"], block["name"])

    def _went_on(self, delta: Mapping[str, Any]) -> Iterator[RawDelta]:
        match delta["type"]:
            case "text_delta":
                yield TextDelta(_text(delta["text"]))
            case "thinking_delta":
                yield ReasoningDelta(_text(delta["thinking"]))
            case "signature_delta":
                self._signature.append(_text(delta["signature"]))
            case "input_json_delta":
                self._arguments.append(_text(delta["partial_json"]))

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


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _usage(given: Mapping[str, Any], before: Usage, *, output: int) -> Usage:
    """What is reported; a number that is left out stands as it was reported before."""
    return Usage(
        _or(given.get("input_tokens"), before.input_tokens),
        output,
        _or(given.get("cache_read_input_tokens"), before.cached_tokens),
        _or(given.get("cache_creation_input_tokens"), before.cache_write_tokens),
    )


def _or(value: int | None, before: int) -> int:
    return before if value is None else value


# --- errors ----------------------------------------------------------------------------------------------


def named_error(kind: str, reason: str, retry_after: float | None) -> ModelError | None:
    """What a type of error of the provider means; None where the type says nothing of its own.

    https://platform.claude.com/docs/en/api/errors
    """
    match kind:
        case "overloaded_error":
            return Overloaded(reason=reason, retry_after=retry_after)
        case "rate_limit_error":
            return RateLimited(reason=reason, retry_after=retry_after)
        case "timeout_error":
            return TimedOut(reason=reason)
        case "authentication_error" | "permission_error" | "billing_error":
            return wire.not_allowed(reason)
        case "invalid_request_error" | "not_found_error" | "request_too_large":
            return BadRequest(reason=reason)
    return None


def _stream_error(data: str) -> ModelError:
    """An error inside a stream, whose status was 200."""
    try:
        kind = json.loads(data)["error"]["type"]
    except (KeyError, TypeError, ValueError):
        kind = None
    known = named_error(kind, f"stream {kind}", None) if isinstance(kind, str) else None
    return known or Unavailable(reason="stream error")
