"""Requests and their threads: one each while it is needed, none while an answer streams."""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from memberintel import threads
from memberintel.tenancy.context import Scope
from sessions import follow, live

here = sync_to_async(threading.get_ident)


@pytest.fixture(autouse=True)
def _none_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_idle", [])


async def test_a_request_has_one_thread_and_the_next_one_takes_it_over() -> None:
    seen = set()
    for _ in range(3):
        async with threads.own_thread():
            seen |= {await here(), await here()}
    assert len(seen) == 1
    assert threading.get_ident() not in seen


async def test_requests_at_the_same_time_have_threads_of_their_own() -> None:
    together = asyncio.Barrier(3)

    async def request() -> int:
        async with threads.own_thread():
            first = await here()
            await together.wait()
            assert await here() == first
            return first

    assert len(set(await asyncio.gather(*(request() for _ in range(3))))) == 3


async def test_no_more_threads_are_kept_than_are_of_use() -> None:
    together = asyncio.Barrier(threads.KEPT + 4)

    async def request() -> threading.Thread:
        async with threads.own_thread():
            thread = await sync_to_async(threading.current_thread)()
            await together.wait()
            return thread

    made = await asyncio.gather(*(request() for _ in range(threads.KEPT + 4)))
    kept = {thread for own in threads._idle for thread in own._threads}
    assert len(kept) == threads.KEPT
    for thread in set(made) - kept:
        await asyncio.to_thread(thread.join)  # they end by themselves


async def test_while_an_answer_streams_its_thread_serves_others() -> None:
    turn = UUID(int=7)
    feed = live.open_feed(turn, 1)
    place = follow.Place(UUID(int=8), turn, 1, 1)
    async with threads.own_thread():
        first = await here()
        stream = follow.stream(Scope(UUID(int=1), UUID(int=2)), place, "")
        feed.publish("turn", text="")
        assert b"event: turn" in await anext(stream)
        assert await asyncio.create_task(_other()) == first
        feed.end()
        assert [event async for event in stream] == []
        assert await here() == first  # it is free again, and taken again
    live.forget([(turn, 1)])


async def _other() -> int:
    async with threads.own_thread():
        return await here()


def test_the_middleware_around_the_views_is_one_piece() -> None:
    assert settings.MIDDLEWARE[-1] == f"{threads.__name__}.{threads.InOneGo.__name__}"
