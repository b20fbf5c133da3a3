"""The web process: Django behind a lifespan, which starts and drains what lives longer than a request."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import warnings
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from types import FrameType
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver

from memberintel.accounts.problems import PROBLEM, Problem
from memberintel.threads import own_thread

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")

# WhiteNoise hands out its files, which are small, as ordinary iterators.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

YOUNG_OBJECTS = 10_000  # made before the collector looks at them; by itself it looks five times as often

django = get_asgi_application()


type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]


async def application(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """ASGI entry. Django itself refuses lifespan events, so they are answered here."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    door = _Door(scope, receive)
    if not door.closed:
        async with own_thread():
            await django(scope, door.receive, send)  # type: ignore[arg-type]
    if door.closed:
        await _refuse(scope, send)


class _Door:
    """Lets a request in piece by piece, until its body is longer than any we take. `closed` by then, or from the
    beginning when it says so itself; to Django it then looks as if the client had left."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive) -> None:
        announced = dict(scope["headers"]).get(b"content-length", b"")[:20]
        self.closed = announced.isdigit() and int(announced) > settings.REQUEST_LIMIT_BYTES
        self._receive, self._taken = receive, 0

    async def receive(self) -> Message:
        """The next piece."""
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken <= settings.REQUEST_LIMIT_BYTES:
            return message
        self.closed = True
        return {"type": "http.disconnect"}


async def _refuse(scope: MutableMapping[str, Any], send: Send) -> None:
    limit = f"{settings.REQUEST_LIMIT_BYTES // 1_000_000} MB"
    problem = Problem(413, "body-too-long", f"A request may have {limit}. Nothing was kept.")
    kind, body = b"text/plain; charset=utf-8", problem.detail.encode()
    if scope["path"].startswith("/api/"):
        kind, body = PROBLEM.encode(), problem.response().content
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    from sessions import turn

    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            if refusal := await _start():
                await send({"type": "lifespan.startup.failed", "message": refusal})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await turn.drain()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _start() -> str:
    """Make ready to serve; why not, in one sentence, or nothing."""
    from memberintel.checks import verify_start
    from sessions import live, turn

    try:
        await sync_to_async(verify_start)()
        await asyncio.to_thread(_warm)
    except SystemExit as refusal:
        return str(refusal)
    loop = asyncio.get_running_loop()
    turn.serve_on(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        _also(number, lambda: loop.call_soon_threadsafe(live.leave))
    return ""


def _warm() -> None:
    """Load what the first requests would wait for. None of it is ever garbage, and to look for it among so much
    would stop every answer for a moment each time."""
    from memberintel.lib import tokens
    from memberintel.llm import routes
    from memberintel.llm.backends.registry import backend
    from memberintel.llm.errors import ModelError

    get_resolver().url_patterns  # noqa: B018
    tokens.count("")
    for purpose in settings.LLM_ROUTES:
        with suppress(ModelError, routes.UnknownPurpose):  # whoever asks for it is told
            for route in routes.chain(purpose):
                backend(route.provider)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _also(number: signal.Signals, first: Callable[[], object]) -> None:
    """Do `first` when the signal comes, then what the server does.

    The server waits for open streams before it tells us that it leaves, so the streams must hear of the
    signal themselves.
    """
    server = signal.getsignal(number)

    def handle(signum: int, frame: FrameType | None) -> None:
        first()
        if callable(server):
            server(signum, frame)

    signal.signal(number, handle)
