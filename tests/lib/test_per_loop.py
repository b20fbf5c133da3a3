"""Clients that belong to an event loop are closed with it."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from memberintel.lib.per_loop import PerLoop


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_client_lives_as_long_as_its_loop(run: object) -> None:
    events: list[str] = []

    def make(configuration: str) -> str:
        events.append(f"make {configuration}")
        return configuration

    async def close(client: str) -> None:
        await asyncio.sleep(0)
        events.append(f"close {client}")

    clients = PerLoop(make, close)

    async def work() -> None:
        assert await clients.get("a") == "a"
        await asyncio.gather(*(clients.get(each) for each in "aba"))

    assert callable(run)
    for _ in range(2):
        run(work())
    assert sorted(events[:4]) == ["close a", "close b", "make a", "make b"]
    assert sorted(events[4:]) == ["close a", "close b", "make a", "make b"]
    assert len(clients._held) == 0
