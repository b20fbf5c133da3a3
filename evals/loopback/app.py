"""The routes, as an ASGI application.

To steer it over HTTP: POST /loopback/plays with a list of plays (fields as of `scenario.Play`; an empty list
lets it answer for itself again), GET /loopback/calls for what it was sent, DELETE /loopback to forget all.
A key that contains "wrong" is not accepted, a model that contains "no-such" is not known.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from evals.loopback import advisor, gemini, messages
from evals.loopback.asked import Asked, Refusal, Said
from evals.loopback.prefixes import Counted
from evals.loopback.scenario import Call, Play, Scenario
from memberintel.lib import clock, tokens

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_PIECES = re.compile(r"\s*\S+\s*(?:\S+\s*)?")
_VERTEX = re.compile(r"/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/publishers/google/models/([^/:]+):(\w+)")
_WITH_KEY = re.compile(r"/v1(?:beta)?/models/([^/:]+):(\w+)")
_GEMINI_MODEL = re.compile(r"/v1(?:beta)?/models/([^/:]+)")
MALFORMED = '{"text": "half an'
THOUGHT = "Looking at what I was told before."


class Dropped(Exception):
    """Breaks the connection: the server closes it without ending the response."""


class Gone(Exception):
    """The client has left."""


class Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method, self.path = str(scope["method"]), str(scope["path"])
        self.headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        self.port = int((scope.get("client") or ("", 0))[1])
        self._receive, self._send = receive, send
        self.at = 0.0
        self.begun = False
        self.left = asyncio.Event()

    async def body(self) -> bytes:
        """All of the request's body."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                self.at = clock.now().timestamp()
                return b"".join(parts)

    async def watch(self) -> None:
        """Sets `left` when the client goes away."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.left.set()

    async def wait(self, seconds: float | None) -> None:
        """Lets time pass, for ever with None; Gone as soon as the client is."""
        try:
            await asyncio.wait_for(self.left.wait(), seconds)
        except TimeoutError:
            return
        raise Gone

    async def begin(self, status: int, kind: str, headers: dict[str, str] | None = None) -> None:
        """Sends the head."""
        given = {"content-type": kind, **(headers or {})}
        pairs = [(name.encode(), value.encode()) for name, value in given.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        self.begun = True

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Sends a part of the body."""
        if self.left.is_set():
            raise Gone
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def reply(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        """A whole JSON response."""
        await self.begin(status, "application/json", headers)
        await self.write(json.dumps(value, ensure_ascii=False).encode(), more=False)


class Loopback:
    """The application. `scenario` steers it from the same process."""

    def __init__(self, scenario: Scenario | None = None) -> None:
        self.scenario = scenario or Scenario()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request."""
        exchange = Exchange(scope, receive, send)
        try:
            await self._route(exchange, await exchange.body())
        except Gone:
            return

    async def _route(self, exchange: Exchange, body: bytes) -> None:
        if exchange.path.startswith("/loopback"):
            await self._steer(exchange, body)
        elif "anthropic-version" in exchange.headers:
            await self._anthropic(exchange, body)
        else:
            await self._gemini(exchange, body)

    async def _steer(self, exchange: Exchange, body: bytes) -> None:
        if exchange.method == "POST":
            self.scenario.play([Play.read(each) for each in json.loads(body)])
        elif exchange.method == "DELETE":
            self.scenario.reset()
        calls = [{**asdict(call), "body": json.loads(call.body)} for call in self.scenario.calls()]
        await exchange.reply(200, calls)

    # --- Anthropic ---------------------------------------------------------------------------------------

    async def _anthropic(self, exchange: Exchange, body: bytes) -> None:
        try:
            _check_key(exchange.headers.get("authorization") or exchange.headers.get("x-api-key"), 401)
            if exchange.path == "/v1/messages":
                asked = messages.read(body)
                _check_model(asked.model)
                await self._answer(
                    exchange,
                    Call("messages", asked.model, body, exchange.port, exchange.at),
                    asked,
                    AsMessages(asked),
                )
            elif exchange.path.startswith("/v1/models/"):
                model = exchange.path.removeprefix("/v1/models/")
                _check_model(model)
                await exchange.reply(200, messages.model_info(model))
            else:
                raise Refusal(404, "no such path")
        except Refusal as refusal:
            await exchange.reply(refusal.status, messages.failure(refusal.status, refusal.why))

    # --- Gemini ------------------------------------------------------------------------------------------

    async def _gemini(self, exchange: Exchange, body: bytes) -> None:
        try:
            if found := _VERTEX.fullmatch(exchange.path):
                _check_key(exchange.headers.get("authorization"), 401)
                await self._generate(exchange, body, "vertex", found[1], found[2])
            elif found := _WITH_KEY.fullmatch(exchange.path):
                _check_key(exchange.headers.get("x-goog-api-key"), 400)
                await self._generate(exchange, body, "key", found[1], found[2])
            elif found := _GEMINI_MODEL.fullmatch(exchange.path):
                _check_model(found[1])
                await exchange.reply(200, gemini.model_info(found[1]))
            else:
                raise Refusal(404, "no such path")
        except Refusal as refusal:
            await exchange.reply(refusal.status, gemini.failure(refusal.status, refusal.why))

    async def _generate(self, exchange: Exchange, body: bytes, api: Any, model: str, verb: str) -> None:
        _check_model(model)
        if verb not in {"generateContent", "streamGenerateContent"}:
            await exchange.reply(200, gemini.embedded(verb, body))
            return
        asked = gemini.read(model, body, stream=verb == "streamGenerateContent")
        await self._answer(
            exchange, Call(api, model, body, exchange.port, exchange.at), asked, AsGemini(asked)
        )

    # --- answers -----------------------------------------------------------------------------------------

    async def _answer(
        self, exchange: Exchange, call: Call, asked: Asked, format: AsMessages | AsGemini
    ) -> None:
        play = self.scenario.begin(call)
        watching = asyncio.create_task(exchange.watch())
        try:
            await exchange.wait(play.first_after or 0.0)
            await self._play(exchange, play, asked, format)
        finally:
            watching.cancel()
            self.scenario.end()

    async def _play(
        self, exchange: Exchange, play: Play, asked: Asked, format: AsMessages | AsGemini
    ) -> None:
        said = await asyncio.to_thread(_said, play, asked)
        if play.end == "error" and not (said.text or said.reasoning):
            headers = {"retry-after": play.retry_after} if play.retry_after is not None else None
            await exchange.reply(play.status, format.failure(play.status), headers)
            return
        counted = await asyncio.to_thread(format.count, self.scenario)
        if not asked.stream:
            raise Refusal(501, "answers are streamed here")
        await exchange.begin(200, "text/event-stream")
        async for frame in _paced(exchange, play, format.frames(play, said, counted)):
            await exchange.write(frame)
        if play.end == "drop":
            raise Dropped
        if play.end == "stall":
            await exchange.wait(None)
        await exchange.write(b"", more=False)


async def _paced(exchange: Exchange, play: Play, frames: Iterable[bytes]) -> AsyncIterator[bytes]:
    for number, frame in enumerate(frames):
        if number and play.pace:
            await exchange.wait(play.pace)
        yield frame


def _said(play: Play, asked: Asked) -> Said:
    if play.text is not None or play.end in {"error", "blocked", "malformed"}:
        return Said(play.text or (), play.reasoning, play.tools)
    if play.tools or play.end in {"stall", "silence", "drop", "corrupt", "refusal"}:
        return Said((), play.reasoning, play.tools)
    words = advisor.answer(asked.prompt, asked.schema)
    return Said(tuple(_PIECES.findall(words)), (THOUGHT,) if asked.shown else ())


def _output(pieces: Iterable[str]) -> int:
    return tokens.count("".join(pieces))


class AsMessages:
    """An answer as events of the Messages API."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def count(self, scenario: Scenario) -> Counted:
        """Tokens of the request, by the cache's markers."""
        return scenario.prefixes.marked(self.asked.model, self.asked.blocks)

    def failure(self, status: int) -> object:
        """The body of an error."""
        return messages.failure(status, "as it was told")

    def frames(self, play: Play, said: Said, counted: Counted) -> Iterator[bytes]:
        """The whole answer, up to where it breaks off."""
        for frame in messages.opening(self.asked, counted):
            yield messages.encoded(frame)
        index = 0
        if said.reasoning:
            for frame in messages.thinking(self.asked, said.reasoning, index):
                yield messages.encoded(frame)
            index += 1
        if said.text:
            for frame in messages.text(said.text, index):
                yield messages.encoded(frame)
        yield from self._rest(play, said, index)

    def _rest(self, play: Play, said: Said, index: int) -> Iterator[bytes]:
        if play.end in {"stall", "drop", "silence"}:
            return
        if play.end == "corrupt":
            yield b'event: content_block_delta\ndata: {"type": "content_block_delta", "del\n\n'
            return
        if play.end == "error":
            yield messages.encoded(("error", messages.failure(play.status, "as it was told")))
            return
        if said.text:
            yield from map(messages.encoded, messages.closing_block(index))
            index += 1
        tools = (("toolu_1", "search_memory", MALFORMED),) if play.end == "malformed" else said.tools
        for number, tool in enumerate(tools):
            yield from map(messages.encoded, messages.tool(tool, index + number))
        reason = {"max_tokens": "max_tokens", "refusal": "refusal", "blocked": "refusal"}.get(
            play.end, "tool_use" if tools else "end_turn"
        )
        output = _output([*said.reasoning, *said.text, *(tool[2] for tool in tools)])
        yield from map(messages.encoded, messages.closing(reason, output))


class AsGemini:
    """An answer as chunks of streamGenerateContent."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def count(self, scenario: Scenario) -> Counted:
        """Tokens of the request, by what was seen before."""
        return scenario.prefixes.implicit(self.asked.model, self.asked.blocks)

    def failure(self, status: int) -> object:
        """The body of an error."""
        return gemini.failure(status, "as it was told")

    def frames(self, play: Play, said: Said, counted: Counted) -> Iterator[bytes]:
        """The whole answer, up to where it breaks off."""
        if play.end == "blocked":
            yield gemini.encoded(gemini.blocked(gemini.usage(counted, 0, 0)))
            return
        parts: list[dict[str, Any]] = [{"text": text, "thought": True} for text in said.reasoning]
        parts += [{"text": text} for text in said.text]
        parts += [gemini.tool_part(self.asked, tool) for tool in said.tools]
        thoughts, output = _output(said.reasoning), 0
        for part in parts:
            output += 0 if part.get("thought") else _output([part.get("text") or json.dumps(part)])
            yield gemini.encoded(gemini.piece(self.asked, part, gemini.usage(counted, output, thoughts)))
        yield from self._rest(play, gemini.usage(counted, output, thoughts))

    def _rest(self, play: Play, usage: dict[str, int]) -> Iterator[bytes]:
        if play.end in {"stall", "drop", "silence"}:
            return
        if play.end == "corrupt":
            yield b'data: {"candidates": [{"content": {"pa\r\n\r\n'
        elif play.end == "error":
            yield gemini.encoded(gemini.failure(play.status, "as it was told"))
        else:
            reasons = {
                "max_tokens": "MAX_TOKENS",
                "refusal": "SAFETY",
                "malformed": "MALFORMED_FUNCTION_CALL",
            }
            yield gemini.encoded(gemini.stopped(self.asked, usage, reasons.get(play.end, "STOP")))


def _check_key(given: str | None, status: int) -> None:
    key = (given or "").removeprefix("Bearer ").strip()
    if not key or "wrong" in key:
        raise Refusal(status, "API key not valid" if status == 400 else "the key is not accepted")


def _check_model(model: str) -> None:
    if "no-such" in model:
        raise Refusal(404, "no such model")
