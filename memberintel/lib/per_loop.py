"""Clients of other services, one for each event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from weakref import WeakKeyDictionary


class PerLoop[C: Hashable, T]:
    """One client for each event loop and configuration, closed when its loop shuts down.

    Pooled connections belong to the loop that opened them; a worker runs each task on a loop of its own.
    """

    def __init__(self, make: Callable[[C], T], close: Callable[[T], Awaitable[object]]) -> None:
        self._make, self._close = make, close
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[C, _Held[T]]]
        self._held = WeakKeyDictionary()

    async def get(self, configuration: C) -> T:
        """The client of the running loop for this configuration."""
        held = self._held.setdefault(asyncio.get_running_loop(), {})
        if configuration not in held:
            client = self._make(configuration)
            keeper = self._keep(client)
            held[configuration] = _Held(client, keeper)
            await anext(keeper)
        return held[configuration].client

    async def _keep(self, client: T) -> AsyncGenerator[None]:
        # A loop that shuts down closes the asynchronous generators begun on it: the one hook it offers.
        try:
            yield
        finally:
            self._held.pop(asyncio.get_running_loop(), None)
            await self._close(client)


class _Held[T]:
    def __init__(self, client: T, keeper: AsyncGenerator[None]) -> None:
        self.client, self.keeper = client, keeper
