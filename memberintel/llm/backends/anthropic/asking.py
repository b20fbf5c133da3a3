"""A request of ours as the body of a Messages API request.

Built from the prompt alone, in its order, so that a prompt that goes on where another ended begins with the
same bytes, cache markers aside. Markers: on the last tool, on the last system section, on the newest message
of the user, and on the one before, where the previous request had its own.
"""

from __future__ import annotations

import json
from typing import Any

from anthropic import transform_schema

from memberintel.llm.backends.base import Request
from memberintel.llm.backends.wire import plain
from memberintel.llm.types import Message, Prompt, Reasoning, Tool, ToolCall

DEFAULT_OUTPUT_TOKENS = 8192
REASONING_TOKENS = 8192  # room to think in, on top of the answer's own; unused room costs nothing
MARKER = {"type": "ephemeral"}
EMPTY = "(empty)"  # the API refuses a blank text

# How a model that is known by its name thinks. The API answers a wrong setting with an error.
_ALWAYS = ("claude-fable-", "claude-mythos-", "claude-opus-5-5")
_BUDGETED = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5")

Block = dict[str, Any]


def body(request: Request) -> dict[str, Any]:
    """The arguments of `messages.create`, without `stream`."""
    prompt = request.prompt
    thinking = _thinking(request)
    room = 0 if thinking is None or thinking["type"] == "disabled" else REASONING_TOKENS
    if request.model.startswith(_ALWAYS):
        room = REASONING_TOKENS
    made: dict[str, Any] = {
        "model": request.model,
        "max_tokens": (request.max_output_tokens or DEFAULT_OUTPUT_TOKENS) + room,
        "messages": _messages(prompt, request.model),
    }
    if system := _system(prompt):
        made["system"] = system
    if prompt.tools:
        made["tools"] = _tools(prompt.tools)
        if request.answer_only:
            made["tool_choice"] = {"type": "none"}
    if thinking is not None:
        made["thinking"] = thinking
    if request.output is not None:
        schema = transform_schema(request.output)
        made["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return made


def stamp(model: str, kind: str, value: str) -> str:
    """What the provider wants back verbatim, with the model that gave it: no other model may be shown it."""
    return f"{model} {kind} {value}"


def _thinking(request: Request) -> dict[str, Any] | None:
    """None leaves it to the model's default."""
    if not request.model.startswith("claude-"):
        return None  # another maker's model behind a compatible server
    if request.model.startswith(_BUDGETED):
        return {"type": "enabled", "budget_tokens": REASONING_TOKENS // 2} if request.reasoning else None
    if request.reasoning:
        return {"type": "adaptive", "display": "summarized"}
    return None if request.model.startswith(_ALWAYS) else {"type": "disabled"}


def _system(prompt: Prompt) -> list[Block]:
    blocks: list[Block] = [{"type": "text", "text": plain(text)} for text in prompt.system if text.strip()]
    return _marked(blocks)


def _tools(tools: tuple[Tool, ...]) -> list[Block]:
    return _marked(
        [
            {
                "name": tool.name,
                "description": plain(tool.description),
                "input_schema": json.loads(tool.schema),
            }
            for tool in tools
        ]
    )


def _messages(prompt: Prompt, model: str) -> list[dict[str, Any]]:
    of_user = [place for place, message in enumerate(prompt.messages) if message.role == "user"]
    marked = of_user[-2:]
    contents = [_content(message, model) for message in prompt.messages]
    return [
        {"role": message.role, "content": _marked(content) if place in marked else content}
        for place, (message, content) in enumerate(zip(prompt.messages, contents, strict=True))
    ]


def _marked(blocks: list[Block]) -> list[Block]:
    if blocks:
        blocks[-1] = {**blocks[-1], "cache_control": MARKER}
    return blocks


def _content(message: Message, model: str) -> list[Block]:
    blocks: list[Block] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": plain(result.content) or EMPTY,
            **({"is_error": True} if result.error else {}),
        }
        for result in message.results
    ]
    blocks += [block for each in message.reasoning if (block := _thought(each, model))]
    if message.text.strip():
        blocks.append({"type": "text", "text": plain(message.text)})
    blocks += [_call(call) for call in message.calls]
    return blocks or [{"type": "text", "text": EMPTY}]


def _thought(reasoning: Reasoning, model: str) -> Block | None:
    """The block as this very model gave it; None for one of another model, which could not read it."""
    maker, _, rest = reasoning.signature.partition(" ")
    kind, _, value = rest.partition(" ")
    if maker != model:
        return None
    if kind == "redacted":
        return {"type": "redacted_thinking", "data": value}
    return {"type": "thinking", "thinking": plain(reasoning.text), "signature": value}


def _call(call: ToolCall) -> Block:
    given = json.loads(call.arguments or "{}")
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": given if isinstance(given, dict) else {"value": given},
    }
