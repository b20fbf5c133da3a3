"""The chunks of a Gemini stream as our deltas."""

from __future__ import annotations

import json
from collections.abc import Iterator

from google.genai import types
from google.genai.types import FinishReason

from memberintel.llm.backends.base import RawDelta, UsageSoFar
from memberintel.llm.backends.gemini.asking import stamp
from memberintel.llm.errors import InvalidOutput, ModelError, Refused, Unavailable
from memberintel.llm.types import (
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)

_REFUSED = {
    FinishReason.SAFETY, FinishReason.RECITATION, FinishReason.BLOCKLIST, FinishReason.PROHIBITED_CONTENT,
    FinishReason.SPII, FinishReason.LANGUAGE, FinishReason.ESCALATION, FinishReason.PUP_LIMITED_DISABLED,
    FinishReason.MODEL_ARMOR,
}  # fmt: skip
_MALFORMED = {
    FinishReason.MALFORMED_FUNCTION_CALL, FinishReason.MALFORMED_RESPONSE, FinishReason.UNEXPECTED_TOOL_CALL,
    FinishReason.TOO_MANY_TOOL_CALLS, FinishReason.MISSING_THOUGHT_SIGNATURE,
}  # fmt: skip
_CUT = {FinishReason.MAX_TOKENS, FinishReason.CONTINUATION}


class Reading:
    """One answer as it comes in. `finished` is there once the provider said why it stopped."""

    def __init__(self, provider: str, asked: str) -> None:
        self._provider, self._asked = provider, asked
        self._usage = Usage()
        self._calls = 0
        self.finished: Finished | None = None

    def take(self, chunk: types.GenerateContentResponse) -> Iterator[RawDelta]:
        """What this chunk adds. Refused when the prompt or the answer is held back, InvalidOutput for a tool
        call that cannot be read."""
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
            yield UsageSoFar(self._usage)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            raise Refused(reason="prompt blocked")
        candidate = chunk.candidates[0] if chunk.candidates else None
        if candidate is None:
            return
        for part in (candidate.content and candidate.content.parts) or ():
            yield from self._part(part)
        if candidate.finish_reason:
            self._stop(candidate.finish_reason, chunk.model_version or self._asked)

    def _part(self, part: types.Part) -> Iterator[RawDelta]:
        if part.function_call is not None:
            yield ToolCallDelta(self._call(part.function_call, part.thought_signature))
        elif part.text:
            yield ReasoningDelta(part.text) if part.thought else TextDelta(part.text)

    def _call(self, call: types.FunctionCall, signature: bytes | None) -> ToolCall:
        self._calls += 1
        return ToolCall(
            call.id or f"call_{self._calls}",
            call.name or "",
            json.dumps(call.args or {}, ensure_ascii=False),
            stamp(self._asked, signature) if signature else "",
        )

    def _stop(self, reason: FinishReason, model: str) -> None:
        if failure := _failure(reason):
            raise failure
        why: StopReason = "max_tokens" if reason in _CUT else "tool_calls" if self._calls else "end"
        self.finished = Finished(why, self._usage, model, self._provider)


def _failure(reason: FinishReason) -> ModelError | None:
    if reason in _REFUSED:
        return Refused(reason="refusal")
    if reason in _MALFORMED:
        return InvalidOutput(reason="tool call")
    if reason in {FinishReason.STOP, *_CUT}:
        return None
    return Unavailable(reason="stopped for another reason")


def _usage(given: types.GenerateContentResponseUsageMetadata) -> Usage:
    """Theirs counts what was read from the cache as part of the prompt, and thoughts apart from the answer."""
    cached = given.cached_content_token_count or 0
    prompt = (given.prompt_token_count or 0) + (given.tool_use_prompt_token_count or 0)
    output = (given.candidates_token_count or 0) + (given.thoughts_token_count or 0)
    return Usage(max(0, prompt - cached), output, cached)
