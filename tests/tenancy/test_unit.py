"""Short pieces of database work from coroutines that live long."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from django.db import connection, transaction

from memberintel.tenancy.context import Scope, scope, scope_or_none
from memberintel.tenancy.unit import unit
from sessions.models import Session
from tests.tenancy.conftest import Cast
from tests.tenancy.trials import try_out
from tests.waiting import PATIENCE


def inside() -> tuple[Scope | None, bool]:
    return scope_or_none(), connection.in_atomic_block


async def test_it_runs_in_the_scope_given_and_in_a_transaction(cast: Cast) -> None:
    with scope(cast.charlie.scope):
        assert await unit(cast.alice.scope, inside) == (cast.alice.scope, True)
        assert scope_or_none() == cast.charlie.scope
    assert await unit(cast.alice.scope, Session.objects.count) == 1


async def test_it_inherits_nothing_from_its_caller(cast: Cast) -> None:
    ambient: ContextVar[str] = ContextVar("ambient", default="none")
    ambient.set("of the caller")
    assert await unit(cast.alice.scope, ambient.get) == "none"


async def test_its_connection_is_given_back_also_after_an_error(cast: Cast) -> None:
    held: list[Any] = []

    def fail() -> None:
        connection.ensure_connection()
        held.append(connection.connection)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await unit(cast.alice.scope, fail)
    assert held[0].closed


async def test_an_error_rolls_back_all_of_it(cast: Cast) -> None:
    def half() -> None:
        Session.objects.update(user_messages=41)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await unit(cast.bob.scope, half)
    assert await unit(cast.bob.scope, Session.objects.filter(user_messages=41).count) == 0


async def test_a_piece_that_has_begun_is_finished_though_its_caller_is_cancelled(cast: Cast) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def piece() -> None:
        begun.set()
        go_on.wait(PATIENCE)
        Session.objects.update(turn_attempt=7)
        transaction.on_commit(ended.set)

    task = asyncio.create_task(unit(cast.bob.scope, piece))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert await unit(cast.bob.scope, Session.objects.filter(turn_attempt=7).count) == 1


def test_a_hundred_coroutines_share_a_pool_of_eight(cast: Cast) -> None:
    """None starves, none holds a connection between its units, and all connections are back at the end."""
    found = try_out(cast, ways={"units": 100}, DATABASE_POOL="8")
    assert found["outcomes"] == {"units": {"right": 200}}
    pool = found["pool"]
    assert pool["pool_max"] == 8
    assert pool["pool_size"] == pool["pool_available"] <= 8
    assert pool.get("requests_errors", 0) == 0
