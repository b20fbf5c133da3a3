"""How many tokens a model takes: asked of the provider where it tells, else read from settings."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings

from memberintel.llm import routes
from memberintel.llm.backends.registry import backend
from memberintel.llm.errors import ModelError
from memberintel.llm.routes import Route

KEPT_SECONDS = 30.0
ASKING_SECONDS = 5.0

_told: dict[Route, tuple[float, int | None]] = {}


async def window(purpose: str) -> int:
    """Input tokens that fit whichever model of the purpose's chain answers: the smallest of their windows, and no more
    than LLM_WINDOW_MOST.

    Unavailable when no model is set up.
    """
    smallest = min(await asyncio.gather(*map(_of, routes.chain(purpose))))
    return min(smallest, settings.LLM_WINDOW_MOST) if settings.LLM_WINDOW_MOST else smallest


async def _of(route: Route) -> int:
    asked_at, told = _told.get(route, (-KEPT_SECONDS, None))
    if time.monotonic() - asked_at >= KEPT_SECONDS:
        told = await _ask(route)
        _told[route] = (time.monotonic(), told)
    return told or settings.LLM_WINDOWS.get(str(route), settings.LLM_WINDOW_UNKNOWN)


async def _ask(route: Route) -> int | None:
    try:
        async with asyncio.timeout(ASKING_SECONDS):
            return await backend(route.provider).window(route.model)
    except (ModelError, TimeoutError):
        return None
