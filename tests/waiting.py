"""Waiting for what happens beside a test: for a condition, never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = (
    180.0  # seconds: a slow machine that is busy with other tests is no failure, and what comes costs no wait
)
PAUSE = 0.02


def until[T](ready: Callable[[], T], saw: Callable[[], Any] | None = None) -> T:
    """What `ready` gives as soon as it is true. If it never is, the failure tells what `saw` gives, or what it gave."""
    deadline = time.monotonic() + PATIENCE
    while not (found := ready()):
        assert time.monotonic() < deadline, _missed(saw() if saw else found)
        time.sleep(PAUSE)
    return found


async def until_true[T](ready: Callable[[], Awaitable[T]], saw: Callable[[], Any] | None = None) -> T:
    """As `until`, on an event loop that goes on meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while not (found := await ready()):
        assert time.monotonic() < deadline, _missed(saw() if saw else found)
        await asyncio.sleep(PAUSE)
    return found


def _missed(seen: Any) -> str:
    return f"it did not happen in {PATIENCE:.0f} seconds; there was: {seen!r}"[:4_000]
