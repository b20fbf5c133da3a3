"""A model that does what a script says: for tests, also of a running web process.

The route `scripted:NAME` plays the script NAME. A script is a list of plays; each call takes the next one and
the last one is repeated for ever. In the same process:

    scripted.script("demo", [{"steps": [{"text": "Hello"}, {"error": "overloaded"}]}])

For another process MEMBERINTEL_LLM_SCRIPT names a JSON file {"NAME": [play, ...]}; it is read anew whenever it
was changed, and then starts from its first play. What a model was sent is appended to the file's name plus
".calls", one JSON object a line {"name", "purpose", "wire"}.

A play: {"steps": [...], "stop_reason"?, "usage"?: [input, output, cached, cache_write]}. Steps, each with an
optional "delay" in seconds before it, and an optional "gate", a path: the step waits until there is such a file:

    {"text": "..."}         one piece of the answer
    {"words": "..."}        a text in pieces of one word, each after the delay
    {"json": ...}           a value, as one piece of JSON
    {"reasoning": "..."}    a piece of reasoning
    {"tool": "name", "arguments": {...} | "exact text", "id"?: "..."}
    {"usage": [...]}        tokens reported before the end
    {"error": "code", "retry_after"?: seconds, "retryable"?: bool}   codes as in memberintel.llm.errors
    {"stall": true}         nothing more comes, for ever
    {"silence": true}       the stream ends early, without saying why
    {"offline": true}       whatever the offline advisor would answer
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from memberintel.llm.backends.base import Backend, RawDelta, Request, UsageSoFar
from memberintel.llm.errors import ERRORS, ModelError, Unavailable
from memberintel.llm.types import (
    Embeddings,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)

VARIABLE = "MEMBERINTEL_LLM_SCRIPT"
EMBEDDING_SIZE = 8

Step = dict[str, Any]
Play = dict[str, Any]


@dataclass
class _Script:
    plays: list[Play]
    wires: list[bytes] = field(default_factory=list)
    closed: int = 0

    def next_play(self, wire: bytes) -> Play:
        self.wires.append(wire)
        return self.plays[min(len(self.wires), len(self.plays)) - 1]


_lock = threading.Lock()
_scripts: dict[str, _Script] = {}
_file_scripts: dict[str, _Script] = {}
_file_state: tuple[str, int, int] | None = None


def script(name: str, plays: Sequence[Play]) -> None:
    """Sets the plays of `scripted:name` in this process, and forgets the calls it had."""
    if not plays:
        raise ValueError("a script has at least one play")
    with _lock:
        _scripts[name] = _Script(list(plays))


def wires(name: str) -> list[bytes]:
    """The wire bytes of each prompt `scripted:name` got in this process, in order."""
    with _lock:
        return list(_scripts[name].wires)


def closed(name: str) -> int:
    """How many streams of `scripted:name` have ended, whichever way: their connections are closed."""
    with _lock:
        return _scripts[name].closed


class Scripted:
    """Plays scripts. Costs nothing, knows nothing."""

    name = "scripted"

    async def stream(self, request: Request) -> AsyncGenerator[RawDelta]:
        """The next play of the script the model name stands for. Unavailable when there is no such script."""
        wire = request.prompt.wire()
        played = _find(request.model)
        play = played.next_play(wire)
        _append_call(request, wire)
        output = 0
        tools = 0
        try:
            for step in _spread(play["steps"]):
                await _waited(step)
                if step.get("silence"):
                    return
                if step.get("offline"):
                    async with aclosing(_offline().stream(request)) as deltas:
                        async for delta in deltas:
                            yield (
                                replace(delta, provider=self.name, model=request.model)
                                if isinstance(delta, Finished)
                                else delta
                            )
                    return
                delta = await _delta(step, tools)
                output += 1
                tools += isinstance(delta, ToolCallDelta)
                yield delta
            default: StopReason = "tool_calls" if tools else "end"
            usage = Usage(*play["usage"]) if "usage" in play else Usage(len(wire) // 4, output)
            yield Finished(play.get("stop_reason", default), usage, request.model, self.name)
        finally:
            with _lock:
                played.closed += 1

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """Small vectors that depend on the length of the texts only."""
        vectors = tuple(
            tuple(float(len(text) % (place + 2)) for place in range(EMBEDDING_SIZE)) for text in texts
        )
        return Embeddings(vectors, Usage(sum(map(len, texts)) // 4), model, self.name)

    async def window(self, model: str) -> int | None:
        """Not told."""
        return None


def _spread(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        if "words" in step:
            rest = {key: value for key, value in step.items() if key != "words"}
            yield from ({**rest, "text": word} for word in re.findall(r"\s*\S+\s*$|\s*\S+", step["words"]))
        else:
            yield step


async def _waited(step: Step) -> None:
    if delay := step.get("delay"):
        await asyncio.sleep(delay)
    while (gate := step.get("gate")) and not os.path.exists(gate):
        await asyncio.sleep(0.02)


async def _delta(step: Step, tools: int) -> RawDelta:
    if step.get("stall"):
        await asyncio.Event().wait()
    if "error" in step:
        raise _error(step)
    if "text" in step:
        return TextDelta(step["text"])
    if "json" in step:
        return TextDelta(json.dumps(step["json"], ensure_ascii=False))
    if "reasoning" in step:
        return ReasoningDelta(step["reasoning"], step.get("signature", ""))
    if "usage" in step:
        return UsageSoFar(Usage(*step["usage"]))
    if "tool" in step:
        given = step.get("arguments", {})
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return ToolCallDelta(ToolCall(step.get("id", f"call_{tools + 1}"), step["tool"], arguments))
    raise Unavailable(reason="bad script", retryable=False)


def _error(step: Step) -> ModelError:
    kind = ERRORS[step["error"]]
    return kind(reason="scripted", retry_after=step.get("retry_after"), retryable=step.get("retryable"))


def _offline() -> Backend:
    from memberintel.llm.backends.registry import backend

    return backend("offline")


def _find(name: str) -> _Script:
    with _lock:
        _read_file()
        found = _scripts.get(name) or _file_scripts.get(name)
    if found is None:
        raise Unavailable(reason="no script", retryable=False)
    return found


def _read_file() -> None:
    global _file_state
    if not (path := os.environ.get(VARIABLE)):
        return
    try:
        stat = os.stat(path)
        state = (path, stat.st_mtime_ns, stat.st_ino)
        if state == _file_state:
            return
        plays = cast(dict[str, list[Play]], json.loads(Path(path).read_text()))
    except (OSError, ValueError):
        raise Unavailable(reason="no script", retryable=False) from None
    _file_scripts.clear()
    _file_scripts.update({name: _Script(each) for name, each in plays.items()})
    _file_state = state


def _append_call(request: Request, wire: bytes) -> None:
    if not (path := os.environ.get(VARIABLE)):
        return
    record = {
        "name": request.model,
        "purpose": request.purpose,
        "wire": wire.decode("utf-8", "surrogatepass"),
    }
    handle = os.open(f"{path}.calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, json.dumps(record).encode() + b"\n")
    finally:
        os.close(handle)
