"""What a running turn says, passed through Redis so that any process can follow it from any point.

One Redis stream per attempt, entries numbered as the feed numbers them, each sealed for its customer. It
lapses ten minutes after the last entry. Redis is a convenience here: when it fails, the turn goes on, its own
process still serves followers, and others follow what is saved in the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from redis import asyncio as redis
from redis.exceptions import RedisError

from memberintel.lib.per_loop import PerLoop
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault import cipher, keyring
from memberintel.vault.errors import CannotOpen
from sessions.live import KEEP_SECONDS, Feed, Said

logger = logging.getLogger(__name__)

KEY_SECONDS: Final = 30.0
"""How long a publisher goes on with a key before it asks the keyring again."""

BLOCK_SECONDS: Final = 2.0
CONNECT_SECONDS: Final = 1.0
_FAULTS: Final = (RedisError, OSError, TimeoutError)


class Unavailable(Exception):
    """The attempt cannot be followed through Redis: nothing is there, or not all of it."""


@dataclass(slots=True)
class _Box:
    """Seals and opens the entries of one attempt."""

    scope: Scope
    turn: UUID
    _key: bytes = b""
    _until: float = field(default=0.0)

    async def key(self) -> bytes:
        if time.monotonic() >= self._until:
            self._key = await unit(self.scope, keyring.customer_key)
            self._until = time.monotonic() + KEY_SECONDS
        return self._key

    def aad(self) -> bytes:
        return (
            cipher.column_aad(self.scope.tenant_id, self.scope.customer_id, "live", "entry") + self.turn.bytes
        )

    async def seal(self, said: Said) -> bytes:
        text = f"{said.number} {said.name} {said.body}"
        return cipher.seal_with(await self.key(), text.encode("utf-8", "surrogatepass"), self.aad())

    async def open(self, sealed: bytes) -> Said:
        text = cipher.Opener(await self.key()).open(sealed, self.aad()).decode("utf-8", "surrogatepass")
        number, name, body = text.split(" ", 2)
        return Said(int(number), name, body)


def _name(turn: UUID, attempt: int) -> str:
    return f"live:{turn}:{attempt}"


def _client(url: str, wait: float = 0) -> redis.Redis:
    """A client that waits for an answer of Redis for so many seconds longer than for a connection."""
    return redis.Redis.from_url(
        url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS + wait
    )


class _Entries(NamedTuple):
    name: str
    entries: list[tuple[int, bytes]]


class _Publisher:
    """Adds to the streams of all turns of an event loop. What comes while Redis is busy goes out together."""

    def __init__(self, url: str) -> None:
        self._client = _client(url)
        self._waiting: list[_Entries] = []
        self._sending: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def add(self, name: str, entries: list[tuple[int, bytes]]) -> None:
        """Returns when the (number, sealed) entries of the stream are with Redis; one of _FAULTS if they are not."""
        self._waiting.append(_Entries(name, entries))
        if self._next is None:
            self._next = asyncio.create_task(self._send_after(self._sending))
        await asyncio.shield(self._next)  # others wait for it too

    async def _send_after(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        streams, self._waiting = self._waiting, []
        self._sending, self._next = self._next, None
        await self._send(streams)

    async def _send(self, streams: list[_Entries]) -> None:
        pipe = self._client.pipeline(transaction=False)
        for name, entries in streams:
            for number, sealed in entries:
                pipe.xadd(name, {"s": sealed}, id=f"{number}-1")
            pipe.expire(name, KEEP_SECONDS)
        await pipe.execute()

    async def close(self) -> None:
        """Close its connection."""
        await self._client.aclose()


_publishers: Final = PerLoop(_Publisher, _Publisher.close)


async def publish(scope: Scope, feed: Feed) -> None:
    """Pass the feed on until it ends. Never raises: what Redis does not take, it does not take.

    After a failure it goes on with what comes next; a follower sees the gap by the numbers.
    """
    if not settings.REDIS_URL:
        return
    box, name = _Box(scope, feed.turn), _name(feed.turn, feed.attempt)
    publisher = await _publishers.get(settings.REDIS_URL)
    async for batch in _batches(feed):
        try:
            await publisher.add(name, [(said.number, await box.seal(said)) for said in batch])
        except (*_FAULTS, CannotOpen) as error:
            logger.warning("a running answer could not be passed on: %s", type(error).__name__)


async def _batches(feed: Feed) -> AsyncGenerator[list[Said]]:
    """The feed in pieces of what has come while the last one was being passed on."""
    sent = 0
    async for said in feed.follow():
        if said.number <= sent:
            continue
        batch = feed.said[sent:]
        sent = batch[-1].number
        yield batch


async def forget(attempts: Sequence[tuple[UUID, int]]) -> None:
    """Delete what Redis holds of attempts whose session was erased. Never raises: by itself it lapses in minutes."""
    if not settings.REDIS_URL or not attempts:
        return
    try:
        async with _client(settings.REDIS_URL) as client:
            await client.delete(*(_name(turn, attempt) for turn, attempt in attempts))
    except _FAULTS as error:
        logger.warning("the streams of an erased session lapse by themselves: %s", type(error).__name__)


async def follow(scope: Scope, turn: UUID, attempt: int, after: int) -> AsyncGenerator[Said | None]:
    """Everything after the event numbered `after`, then what comes; None after two seconds of silence.

    Does not end by itself: the caller knows which event is the last. Raises Unavailable when Redis is away,
    knows nothing of the attempt, or has lost a part of what is wanted.
    """
    if not settings.REDIS_URL:
        raise Unavailable
    box, name = _Box(scope, turn), _name(turn, attempt)
    try:
        async with _client(settings.REDIS_URL, BLOCK_SECONDS) as client:
            if not await client.exists(name):
                raise Unavailable
            while True:
                found = await _read(client, name, after)
                for sealed in found:
                    said = await box.open(sealed)
                    if said.number != after + 1:
                        raise Unavailable
                    after = said.number
                    yield said
                if not found:
                    yield None
    except _FAULTS as error:
        raise Unavailable from error


async def _read(client: redis.Redis, name: str, after: int) -> list[bytes]:
    answer: Any = await client.xread({name: f"{after}-1"}, count=500, block=int(BLOCK_SECONDS * 1000))
    if not answer:
        return []
    entries = answer[0][1] if isinstance(answer, list) else next(iter(answer.values()))[0]
    return [fields[b"s"] for _, fields in entries]
