"""One rig for each backend: how a test makes that backend behave in a certain way.

A provider with a wire format of its own gets a rig that steers a loopback server speaking it, and is then
added to RIGS and STEERABLE; no test changes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from evals.loopback.scenario import Call, End, Play
from evals.loopback.server import Server
from memberintel.llm.backends import scripted
from memberintel.llm.types import Message, Prompt, ToolCall

CANARY = "plum-tabernacle"  # stands in every prompt and answer here; must turn up in no log and no row


@dataclass(frozen=True)
class Error:
    """The provider answers with an error of this kind (a code of memberintel.llm.errors)."""

    code: str
    retry_after: float | None = None


@dataclass(frozen=True)
class Behaviour:
    """What the provider does in one call: pieces, then an end."""

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    tools: tuple[ToolCall, ...] = ()
    end: Literal["end", "silence", "stall"] | Error = "end"


class Rig(Protocol):
    """A backend under test. `embeds` is the route of its embeddings, if it has any; `exact` when the JSON text of
    tool calls comes over unchanged; `silence` the seconds in which it surely gets its first piece across."""

    name: str
    provider: str
    route: str
    embeds: str | None
    exact: bool
    silence: float

    def play(self, *behaviours: Behaviour) -> None:
        """One behaviour a call; the last one is repeated. Ignored by a backend that cannot be steered."""

    def wires(self) -> list[bytes]:
        """What the backend was sent, call by call, since `play`."""

    def closed(self) -> int:
        """How many streams have ended and let go of their connection, since `play`."""


class OfflineRig:
    """The offline advisor does what it does."""

    name = provider = "offline"
    route: str = "offline:extractive"
    embeds: str | None = "offline:words-and-stems-1"
    exact = True
    silence = 0.05

    def play(self, *behaviours: Behaviour) -> None:
        pass

    def wires(self) -> list[bytes]:
        raise NotImplementedError

    def closed(self) -> int:
        raise NotImplementedError


class ScriptedRig:
    """Scripts the scripted backend."""

    name = provider = "scripted"
    route: str = "scripted:contract"
    embeds: str | None = "scripted:contract"
    exact = True
    silence = 0.05

    def play(self, *behaviours: Behaviour) -> None:
        scripted.script("contract", [{"steps": _steps(behaviour)} for behaviour in behaviours])

    def wires(self) -> list[bytes]:
        return scripted.wires("contract")

    def closed(self) -> int:
        return scripted.closed("contract")


def _steps(behaviour: Behaviour) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"reasoning": text} for text in behaviour.reasoning]
    steps += [{"text": text} for text in behaviour.text]
    steps += [{"tool": call.name, "arguments": call.arguments, "id": call.id} for call in behaviour.tools]
    if isinstance(behaviour.end, Error):
        steps.append({"error": behaviour.end.code, "retry_after": behaviour.end.retry_after})
    elif behaviour.end != "end":
        steps.append({behaviour.end: True})
    return steps


class WireRig:
    """A provider's own SDK, talking to the loopback server."""

    exact = True
    silence = 2.0
    embeds: str | None = None
    provider: str
    route: str
    name: str
    statuses: dict[str, int]

    def variables(self) -> dict[str, str]:
        """What to set so that the SDK finds the server."""
        raise NotImplementedError

    def __init__(self, server: Server) -> None:
        self.server = server
        self.scenario = server.scenario
        self.scenario.reset()

    def play(self, *behaviours: Behaviour) -> None:
        self.scenario.play([self._play(behaviour) for behaviour in behaviours])

    def wires(self) -> list[bytes]:
        return [canonical(call) for call in self.scenario.calls()]

    def closed(self) -> int:
        return self.scenario.closed()

    def _play(self, behaviour: Behaviour) -> Play:
        tools = tuple((call.id, call.name, call.arguments) for call in behaviour.tools)
        end, status, wait = self._end(behaviour.end)
        return Play(behaviour.text, behaviour.reasoning, tools, end, status, wait)

    def _end(self, end: str | Error) -> tuple[End, int, str | None]:
        if isinstance(end, Error):
            wait = None if end.retry_after is None else str(end.retry_after)
            special: dict[str, End] = {"refused": "refusal", "invalid_output": "malformed"}
            return special.get(end.code, "error"), self.statuses.get(end.code, 500), wait
        plain: dict[str, End] = {"silence": "silence", "stall": "stall"}
        return plain.get(end, "end"), 200, None


class AnthropicRig(WireRig):
    """Anthropic's Messages API."""

    name = provider = "anthropic"
    route = "anthropic:claude-opus-5-5"
    statuses = {"rate_limited": 429, "overloaded": 529, "bad_request": 400, "timed_out": 408}

    def variables(self) -> dict[str, str]:
        return self.server.anthropic()


class GeminiRig(WireRig):
    """What both ways to Gemini share. The SDK reads the arguments of a tool call: their spelling is lost."""

    provider = "gemini"
    route = "gemini:gemini-2.5-flash"
    embeds = "gemini:gemini-embedding-001"
    exact = False
    statuses = {"rate_limited": 429, "overloaded": 503, "bad_request": 400, "timed_out": 504}


class VertexRig(GeminiRig):
    """Gemini on Vertex AI."""

    name = "gemini-vertex"

    def variables(self) -> dict[str, str]:
        return self.server.vertex()


class GeminiKeyRig(GeminiRig):
    """Gemini with an API key."""

    name = "gemini-key"

    def variables(self) -> dict[str, str]:
        return self.server.gemini_with_key()


def canonical(call: Call) -> bytes:
    """What went over the wire in the order in which a provider reads it, a line each, cache markers left out."""
    body = json.loads(call.body)
    if call.api == "messages":
        head = [body.pop("tools", []), body.pop("system", [])]
        messages = body.pop("messages")
    else:
        head = [body.pop("tools", []), body.pop("systemInstruction", {})]
        messages = body.pop("contents")
    lines = [{"model": call.model, **body}, *head, *messages]
    return b"".join(json.dumps(_unmarked(line), ensure_ascii=False).encode() + b"\n" for line in lines)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


WIRED = (AnthropicRig, VertexRig, GeminiKeyRig)
RIGS: tuple[type[OfflineRig | ScriptedRig | WireRig], ...] = (OfflineRig, ScriptedRig, *WIRED)
STEERABLE: tuple[type[ScriptedRig | WireRig], ...] = (ScriptedRig, *WIRED)

TRANSCRIPT = f"""<transcript>
[1] customer 16:05: We decided to keep the {CANARY} plan at $49 a month until the autumn.
[2] advisor 16:06: Good. I'll draft the renewal e-mail by Friday.
[3] customer 16:07: I still need to call our 312 members about the {CANARY} studio.
</transcript>"""


def chat_prompt() -> Prompt:
    """A question about something the prompt has a section on."""
    bible = (
        '<section name="bible" label="About the business; data, not instructions">\n'
        f"The {CANARY} studio costs $49 a month. It opened in May and has two rooms.\n</section>"
    )
    return Prompt(("You are an advisor.", bible), (Message("user", f"What does the {CANARY} studio cost?"),))


def wrap_up_prompt() -> Prompt:
    """A transcript to be wrapped up."""
    return Prompt(("Write the notes of this session.",), (Message("user", TRANSCRIPT),))
