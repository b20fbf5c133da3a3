"""What running turns say on its way through Redis: together, in order, and without a harm when Redis is away."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from redis import asyncio as redis
from redis.exceptions import RedisError

from sessions import relay
from sessions.live import KEEP_SECONDS


async def test_what_comes_while_redis_is_busy_goes_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = relay._Publisher(settings.REDIS_URL)
    sent: list[int] = []
    send = publisher._send

    async def counted(streams: list[relay._Entries]) -> None:
        sent.append(len(streams))
        await send(streams)

    monkeypatch.setattr(publisher, "_send", counted)
    names = [f"live:test:{uuid4()}" for _ in range(5)]

    async def turn(name: str) -> None:
        for number in range(1, 21):
            await publisher.add(name, [(number, f"{name} {number}".encode())])

    try:
        await asyncio.gather(*(turn(name) for name in names))
        async with redis.Redis.from_url(settings.REDIS_URL) as client:
            for name in names:
                assert await _said(client, name) == [f"{name} {number}" for number in range(1, 21)]
                assert 0 < await client.ttl(name) <= KEEP_SECONDS
            await client.delete(*names)
    finally:
        await publisher.close()
    assert sum(sent) == 100
    assert len(sent) < 60


async def test_a_redis_that_is_away_fails_those_who_wait_for_it_and_nobody_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher = relay._Publisher("redis://127.0.0.1:1/0")
    name = f"live:test:{uuid4()}"
    with pytest.raises(RedisError):
        await publisher.add(name, [(1, b"lost")])
    monkeypatch.setattr(publisher, "_client", redis.Redis.from_url(settings.REDIS_URL))
    await asyncio.wait_for(publisher.add(name, [(2, b"kept")]), 30)
    async with redis.Redis.from_url(settings.REDIS_URL) as client:
        assert await _said(client, name) == ["kept"]
        await client.delete(name)
    await publisher.close()


async def _said(client: redis.Redis, name: str) -> list[str]:
    found: Any = await client.xrange(name)
    return [fields[b"s"].decode() for _, fields in found]
