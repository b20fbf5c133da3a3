"""Anthropic's Messages API: requests read and checked, answers as its events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from evals.loopback.asked import Asked, Refusal
from evals.loopback.prefixes import MOST_MARKERS, Block, Counted
from memberintel.llm.types import Message, Prompt, Reasoning, Role, Tool, ToolCall, ToolResult

ALWAYS_THINKING = ("claude-fable-", "claude-mythos-", "claude-opus-5-5")
FIELDS = {"model", "max_tokens", "messages", "system", "tools", "thinking", "output_config", "stream", "metadata",
          "tool_choice", "stop_sequences", "cache_control", "service_tier"}  # fmt: skip
TYPES = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
         403: "permission_error", 404: "not_found_error", 408: "timeout_error", 413: "request_too_large",
         429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error"}  # fmt: skip

Frame = tuple[str, dict[str, Any]]


def read(body: bytes) -> Asked:
    """The request; Refusal where the real API would refuse it."""
    given: dict[str, Any] = json.loads(body)
    _check(given)
    blocks = list(_blocks(given))
    if sum(block.marked for block in blocks) > MOST_MARKERS:
        raise Refusal(400, "too many cache markers")
    messages = tuple(_message(each, given["model"]) for each in given["messages"])
    tools = tuple(
        Tool(each["name"], each.get("description", ""), json.dumps(each["input_schema"]))
        for each in given.get("tools", ())
    )
    form = (given.get("output_config") or {}).get("format")
    thinking = given.get("thinking") or {}
    return Asked(
        model=given["model"],
        prompt=Prompt(tuple(_system(given)), messages, tools),
        schema=form["schema"] if form else None,
        blocks=blocks,
        most_tokens=given["max_tokens"],
        shown=thinking.get("type") == "enabled" or thinking.get("display") == "summarized",
        stream=bool(given.get("stream")),
    )


def _check(given: dict[str, Any]) -> None:
    if unknown := set(given) - FIELDS:
        raise Refusal(400, f"extra inputs: {sorted(unknown)}")
    if not isinstance(given.get("max_tokens"), int) or not given.get("messages"):
        raise Refusal(400, "max_tokens and messages are required")
    if given["messages"][0]["role"] != "user":
        raise Refusal(400, "the first message must be the user's")
    thinking = given.get("thinking") or {}
    if thinking.get("type") == "disabled" and given["model"].startswith(ALWAYS_THINKING):
        raise Refusal(400, "this model always thinks")
    if thinking.get("budget_tokens", 0) >= given["max_tokens"]:
        raise Refusal(400, "the budget is larger than max_tokens")


def _system(given: dict[str, Any]) -> Iterator[str]:
    system = given.get("system", [])
    if isinstance(system, str):
        yield system
        return
    for block in system:
        if not block["text"].strip():
            raise Refusal(400, "a text is blank")
        yield block["text"]


def _blocks(given: dict[str, Any]) -> Iterator[Block]:
    """All of the request in the order in which it is cached: tools, system, messages."""
    for tool in given.get("tools", ()):
        yield _block("tool", tool)
    system = given.get("system", [])
    for part in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield _block("system", part)
    for message in given["messages"]:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield _block(message["role"], part)


def _block(place: str, part: dict[str, Any]) -> Block:
    rest = {key: value for key, value in part.items() if key != "cache_control"}
    return Block(f"{place} {json.dumps(rest, ensure_ascii=False)}", "cache_control" in part)


def _message(given: dict[str, Any], model: str) -> Message:
    content = given["content"]
    parts: list[dict[str, Any]]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not parts or any(part["type"] == "text" and not part["text"].strip() for part in parts):
        raise Refusal(400, "a message is blank")
    role: Role = "assistant" if given["role"] == "assistant" else "user"
    thoughts = [part for part in parts if part["type"] == "thinking"]
    if any(part["signature"] != signature(model, part["thinking"]) for part in thoughts):
        raise Refusal(400, "a thinking block was changed")
    return Message(
        role,
        "\n".join(part["text"] for part in parts if part["type"] == "text"),
        tuple(
            ToolCall(part["id"], part["name"], json.dumps(part["input"], ensure_ascii=False))
            for part in parts
            if part["type"] == "tool_use"
        ),
        tuple(
            ToolResult(part["tool_use_id"], part["content"], part.get("is_error", False))
            for part in parts
            if part["type"] == "tool_result"
        ),
        tuple(Reasoning(part["thinking"], part["signature"]) for part in thoughts),
    )


# --- answers ---------------------------------------------------------------------------------------------


def signature(model: str, thought: str) -> str:
    """What proves that a thought is the model's own."""
    return hashlib.sha256(f"{model}\n{thought}".encode()).hexdigest()


def opening(asked: Asked, counted: Counted) -> Iterator[Frame]:
    """The events before the first piece."""
    usage = {
        "input_tokens": counted.plain,
        "cache_creation_input_tokens": counted.written,
        "cache_read_input_tokens": counted.read,
        "output_tokens": 1,
    }
    message: dict[str, Any] = {
        "id": "msg_loopback",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield "message_start", {"type": "message_start", "message": message}
    yield "ping", {"type": "ping"}


def thinking(asked: Asked, pieces: tuple[str, ...], index: int) -> Iterator[Frame]:
    """A thinking block, signed at its end."""
    yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
    for piece in pieces:
        yield _delta(index, {"type": "thinking_delta", "thinking": piece})
    signed = signature(asked.model, "".join(pieces))
    yield _delta(index, {"type": "signature_delta", "signature": signed})
    yield _stop(index)


def text(pieces: tuple[str, ...], index: int) -> Iterator[Frame]:
    """A text block that is not closed."""
    yield _start(index, {"type": "text", "text": ""})
    for piece in pieces:
        yield _delta(index, {"type": "text_delta", "text": piece})


def closing_block(index: int) -> Iterator[Frame]:
    """The end of a block."""
    yield _stop(index)


def tool(call: tuple[str, str, str], index: int) -> Iterator[Frame]:
    """A tool call, its arguments in two pieces."""
    name, half = call[1], len(call[2]) // 2
    yield _start(index, {"type": "tool_use", "id": call[0], "name": name, "input": {}})
    for piece in (call[2][:half], call[2][half:]):
        yield _delta(index, {"type": "input_json_delta", "partial_json": piece})
    yield _stop(index)


def closing(reason: str, output_tokens: int) -> Iterator[Frame]:
    """The end of an answer."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield (
        "message_delta",
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output_tokens}},
    )
    yield "message_stop", {"type": "message_stop"}


def failure(status: int, why: str) -> dict[str, Any]:
    """The body of an error, and the data of an error event."""
    kind = TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": why}, "request_id": "req_loopback"}


def encoded(frame: Frame) -> bytes:
    """An event on the wire."""
    return f"event: {frame[0]}\ndata: {json.dumps(frame[1], ensure_ascii=False)}\n\n".encode()


def model_info(model: str) -> dict[str, Any]:
    """What the models endpoint says."""
    return {
        "id": model,
        "type": "model",
        "display_name": model,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 1_000_000,
        "max_tokens": 128_000,
    }


def _start(index: int, block: dict[str, Any]) -> Frame:
    return "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> Frame:
    return "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> Frame:
    return "content_block_stop", {"type": "content_block_stop", "index": index}
