"""What is asked of a model, in words of no provider."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Tool:
    """A tool offered to the model; `schema` is the exact JSON text of its arguments' schema."""

    name: str
    description: str
    schema: str


@dataclass(frozen=True)
class ToolCall:
    """A call the model made; `arguments` is the exact JSON text it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolResult:
    """What came back for the call `call_id`."""

    call_id: str
    content: str
    error: bool = False


@dataclass(frozen=True)
class Message:
    """One message; `calls` belong to an assistant's, `results` to the user's that follows it."""

    role: Literal["user", "assistant"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A whole request: system sections, tools, messages."""

    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()

    def wire(self) -> bytes:
        """Canonical bytes, one JSON line a part; more messages only ever add lines at the end."""
        lines: list[Any] = [["system", *self.system]]
        lines += [["tool", tool.name, tool.description, tool.schema] for tool in self.tools]
        for message in self.messages:
            calls = [[call.id, call.name, call.arguments] for call in message.calls]
            results = [[result.call_id, result.content, result.error] for result in message.results]
            lines.append([message.role, message.text, calls, results])
        return b"".join(_line(line) for line in lines)

    def digest(self) -> str:
        """SHA-256 of the wire bytes, in hex."""
        return hashlib.sha256(self.wire()).hexdigest()


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
