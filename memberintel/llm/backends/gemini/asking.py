"""A request of ours as the arguments of `generate_content_stream`.

Built from the prompt alone, in its order, so that a prompt that goes on where another ended begins with the
same bytes: the provider finds what it has seen before by itself, there are no markers.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from google.genai import types

from memberintel.llm.backends.base import Request
from memberintel.llm.backends.wire import plain
from memberintel.llm.types import Message, Prompt, Tool, ToolCall, ToolResult

DEFAULT_OUTPUT_TOKENS = 8192
REASONING_TOKENS = 8192  # room to think in: here too it counts as output
EMPTY = "(empty)"

# Models that can be told not to think at all; those after them think a little at the least.
_SILENCEABLE = ("gemini-2.5-flash",)
_LEVELLED = ("gemini-3", "gemini-4")


def contents(prompt: Prompt, model: str) -> list[types.Content]:
    """The messages, in order."""
    names = {call.id: call.name for message in prompt.messages for call in message.calls}
    return [_content(message, names, model) for message in prompt.messages]


def config(request: Request) -> types.GenerateContentConfig:
    """All but the messages. Whatever the SDK would do on its own is off: the seam decides that."""
    thinking = _thinking(request)
    prompt, wanted = request.prompt, request.max_output_tokens or DEFAULT_OUTPUT_TOKENS
    silent = thinking is not None and thinking.thinking_budget == 0
    made: dict[str, Any] = {
        "max_output_tokens": wanted if silent else wanted + REASONING_TOKENS,
        "temperature": request.temperature,
        "thinking_config": thinking,
        "automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True),
        "automatic_continuation": False,
    }
    if parts := [types.Part(text=plain(text)) for text in prompt.system if text.strip()]:
        made["system_instruction"] = types.Content(parts=parts)
    if prompt.tools:
        made["tools"] = [types.Tool(function_declarations=[_declared(tool) for tool in prompt.tools])]
        if request.answer_only:
            never = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.NONE)
            made["tool_config"] = types.ToolConfig(function_calling_config=never)
    if request.output is not None:
        made["response_mime_type"] = "application/json"
        made["response_json_schema"] = request.output.model_json_schema()
    return types.GenerateContentConfig(**made)


def stamp(model: str, signature: bytes) -> str:
    """The signature with the model that gave it: no other model may be shown it."""
    return f"{model} {base64.b64encode(signature).decode()}"


def _thinking(request: Request) -> types.ThinkingConfig | None:
    """None leaves it to the model's default."""
    if request.reasoning:
        return types.ThinkingConfig(include_thoughts=True)
    if request.model.startswith(_SILENCEABLE):
        return types.ThinkingConfig(thinking_budget=0)
    if request.model.startswith(_LEVELLED):
        return types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
    return None


def _declared(tool: Tool) -> types.FunctionDeclaration:
    return types.FunctionDeclaration(
        name=tool.name,
        description=plain(tool.description),
        parameters_json_schema=json.loads(tool.schema),
    )


def _content(message: Message, names: dict[str, str], model: str) -> types.Content:
    parts = [_response(result, names.get(result.call_id, "")) for result in message.results]
    if message.text.strip():
        parts.append(types.Part(text=plain(message.text)))
    parts += [_call(call, model) for call in message.calls]
    role = "model" if message.role == "assistant" else "user"
    return types.Content(role=role, parts=parts or [types.Part(text=EMPTY)])


def _response(result: ToolResult, name: str) -> types.Part:
    key = "error" if result.error else "output"
    return types.Part(
        function_response=types.FunctionResponse(
            id=result.call_id, name=name, response={key: plain(result.content)}
        )
    )


def _call(call: ToolCall, model: str) -> types.Part:
    given = json.loads(call.arguments or "{}")
    maker, _, signature = call.signature.partition(" ")
    return types.Part(
        function_call=types.FunctionCall(
            id=call.id, name=call.name, args=given if isinstance(given, dict) else {"value": given}
        ),
        thought_signature=base64.b64decode(signature) if maker == model else None,
    )
