"""Gemini's API, on Vertex AI and with a key: requests read and checked, answers as its chunks."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from evals.loopback.asked import Asked, Refusal
from evals.loopback.prefixes import Block, Counted
from memberintel.lib import stems, tokens
from memberintel.llm.types import Message, Prompt, Role, Tool, ToolCall, ToolResult

STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}  # fmt: skip
FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}
ALWAYS_THINKING = ("gemini-3", "gemini-2.5-pro")
WINDOW = 1_048_576

Chunk = dict[str, Any]


def read(model: str, body: bytes, *, stream: bool) -> Asked:
    """The request; Refusal where the real API would refuse it."""
    given: dict[str, Any] = json.loads(body)
    if unknown := set(given) - FIELDS:
        raise Refusal(400, f"unknown names: {sorted(unknown)}")
    contents = given.get("contents") or []
    if not contents or any(not content.get("parts") for content in contents):
        raise Refusal(400, "contents are required")
    config = given.get("generationConfig", {})
    # The SDK sends these in either spelling, and the API takes both.
    thinking = {
        key.replace("_", "").lower(): value for key, value in config.get("thinkingConfig", {}).items()
    }
    if thinking.get("thinkingbudget") == 0 and model.startswith(ALWAYS_THINKING):
        raise Refusal(400, "this model always thinks")
    declared = [each for tool in given.get("tools", ()) for each in tool.get("functionDeclarations", ())]
    parts = given.get("systemInstruction", {}).get("parts", [])
    return Asked(
        model=model,
        prompt=Prompt(
            tuple(part["text"] for part in parts),
            tuple(_message(content, model) for content in contents),
            tuple(
                Tool(each["name"], each.get("description", ""), json.dumps(each["parametersJsonSchema"]))
                for each in map(_spelt, declared)
            ),
        ),
        schema=config.get("responseJsonSchema") or config.get("responseSchema"),
        blocks=list(_blocks(given)),
        most_tokens=config.get("maxOutputTokens", 8192),
        shown=bool(thinking.get("includeThoughts")),
        stream=stream,
    )


def _spelt(given: dict[str, Any]) -> dict[str, Any]:
    """The fields in the spelling of JSON: the SDK sends some in the other one, and the API takes both."""
    return {re.sub("_([a-z])", lambda found: found[1].upper(), key): value for key, value in given.items()}


def _blocks(given: dict[str, Any]) -> Iterator[Block]:
    for part in given.get("systemInstruction", {}).get("parts", []):
        yield Block(f"system {json.dumps(part, ensure_ascii=False)}")
    for tool in given.get("tools", ()):
        yield Block(f"tool {json.dumps(tool, ensure_ascii=False)}")
    for content in given["contents"]:
        for part in content["parts"]:
            yield Block(f"{content.get('role')} {json.dumps(part, ensure_ascii=False)}")


def _message(content: dict[str, Any], model: str) -> Message:
    parts = content["parts"]
    calls = [part for part in parts if "functionCall" in part]
    for part in calls:
        signed = part.get("thoughtSignature")
        own = signature(model, part["functionCall"]["name"])
        if signed is not None and signed.replace("-", "+").replace("_", "/") != own:
            raise Refusal(400, "a thought signature was changed")
    role: Role = "assistant" if content.get("role") == "model" else "user"
    return Message(
        role,
        "\n".join(part["text"] for part in parts if "text" in part),
        tuple(
            ToolCall(
                part["functionCall"].get("id", ""),
                part["functionCall"]["name"],
                json.dumps(part["functionCall"].get("args", {}), ensure_ascii=False),
            )
            for part in calls
        ),
        tuple(
            ToolResult(
                part["functionResponse"].get("id", ""),
                json.dumps(part["functionResponse"]["response"], ensure_ascii=False),
            )
            for part in parts
            if "functionResponse" in part
        ),
    )


# --- answers ---------------------------------------------------------------------------------------------


def signature(model: str, name: str) -> str:
    """What the model wants back with a tool call, in base64."""
    return base64.b64encode(hashlib.sha256(f"{model}\n{name}".encode()).digest()).decode()


def piece(asked: Asked, part: dict[str, Any], usage: dict[str, int], reason: str = "") -> Chunk:
    """A chunk with one part."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model}


def stopped(asked: Asked, usage: dict[str, int], reason: str) -> Chunk:
    """A chunk that says only why it stopped."""
    return {
        "candidates": [{"finishReason": reason, "index": 0}],
        "usageMetadata": usage,
        "modelVersion": asked.model,
    }


def blocked(usage: dict[str, int]) -> Chunk:
    """The chunk of a prompt that is not answered."""
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage}


def tool_part(asked: Asked, call: tuple[str, str, str]) -> dict[str, Any]:
    """A tool call, signed."""
    made = {"id": call[0], "name": call[1], "args": json.loads(call[2])}
    return {"functionCall": made, "thoughtSignature": signature(asked.model, call[1])}


def usage(counted: Counted, output: int, thoughts: int) -> dict[str, int]:
    """Tokens as this API reports them: what was read from the cache is part of the prompt."""
    prompt = counted.plain + counted.read
    made = {"promptTokenCount": prompt, "totalTokenCount": prompt + output + thoughts}
    optional = {
        "cachedContentTokenCount": counted.read,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": thoughts,
    }
    return made | {name: value for name, value in optional.items() if value}


def failure(status: int, why: str) -> dict[str, Any]:
    """The body of an error, and the chunk of an error inside a stream."""
    error: dict[str, Any] = {"code": status, "message": why, "status": STATUSES.get(status, "UNKNOWN")}
    if why == "API key not valid":
        error["details"] = [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        ]
    return {"error": error}


def encoded(chunk: Chunk) -> bytes:
    """A chunk on the wire."""
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n".encode()


def model_info(model: str) -> dict[str, Any]:
    """What the models endpoint says to a key."""
    return {"name": f"models/{model}", "inputTokenLimit": WINDOW, "outputTokenLimit": 65_536}


# --- embeddings ------------------------------------------------------------------------------------------


def embedded(verb: str, body: bytes) -> dict[str, Any]:
    """The answer of `predict`, `embedContent` or `batchEmbedContents`."""
    given = json.loads(body)
    if verb == "predict":
        texts = [each["content"] for each in given["instances"]]
        return {"predictions": [{"embeddings": _vector(text, counted=True)} for text in texts]}
    if verb == "embedContent":
        return {"embedding": _vector(_text(given["content"]))}
    return {"embeddings": [_vector(_text(each["content"])) for each in given["requests"]]}


def _text(content: dict[str, Any]) -> str:
    said = "\n".join(part["text"] for part in content["parts"])
    if not said:
        raise Refusal(400, "content is empty")
    return said


def _vector(text: str, *, counted: bool = False) -> dict[str, Any]:
    values: Sequence[float] = stems.vector(text)
    statistics = {"statistics": {"token_count": tokens.count(text)}} if counted else {}
    return {"values": list(values), **statistics}
