"""The web process: Django behind a lifespan, which starts and drains what lives longer than a request."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")

django = get_asgi_application()

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]


async def application(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """ASGI entry. Django itself refuses lifespan events, so they are answered here."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    else:
        await django(scope, receive, send)  # type: ignore[arg-type]


async def _lifespan(receive: Receive, send: Send) -> None:
    from asgiref.sync import sync_to_async

    from memberintel.checks import verify_start
    from sessions import turn

    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await sync_to_async(verify_start)()
            except SystemExit as refusal:
                await send({"type": "lifespan.startup.failed", "message": str(refusal)})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await turn.drain()
            await send({"type": "lifespan.shutdown.complete"})
            return
