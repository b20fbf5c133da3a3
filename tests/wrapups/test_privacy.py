"""A session that is erased leaves no notes behind, and notes whose time is up go for good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import unit
from tests.conftest import Person
from tests.wrapups.stage import ANSWER, PLAN, job_of, model, run, talked, wrap_ups
from wrapups import actions, backfill, makers, privacy, work
from wrapups.models import JobState

Login = Callable[[str], AbstractContextManager[None]]


def nobody(*args: Any, **kwargs: Any) -> None:
    """Puts nothing on any queue."""


def test_an_erased_session_has_no_notes_and_gets_none(alice: Person, login: Login) -> None:
    session, owed = talked(alice.scope, PLAN), talked(alice.scope, PLAN)
    with login("worker"):
        run(makers.do(job_of(alice.scope, session).id, alice.scope))
    with scope(alice.scope), transaction.atomic():
        assert privacy.forget_session(session)["wrap_ups"] == 1
        assert privacy.forget_session(owed)["wrap_ups"] == 0
    with login("worker"):
        backfill.run(later=nobody, at_once=True)
    for gone in (session, owed):
        assert wrap_ups(alice.scope, gone) == []
        assert job_of(alice.scope, gone).state == JobState.DELETED


def test_notes_that_are_being_written_of_it_are_not_kept(
    alice: Person, login: Login, settings: Any, tmp_path: Path
) -> None:
    session = talked(alice.scope, PLAN)
    job = job_of(alice.scope, session).id

    async def meanwhile() -> work.Outcome:
        writing = asyncio.create_task(makers.do(job, alice.scope))
        while (await unit(alice.scope, lambda: job_of(alice.scope, session).attempt)) == 0:
            await asyncio.sleep(0.02)
        await unit(alice.scope, privacy.forget_session, session)
        gate.touch()
        return await writing

    gate = tmp_path / "gate"
    with model(settings, f"late-{uuid4().hex}", {"json": ANSWER, "gate": str(gate)}):
        assert run(meanwhile()) == work.NotOurs()
    assert wrap_ups(alice.scope, session) == []
    assert job_of(alice.scope, session).state == JobState.DELETED


def test_a_trivial_session_stays_trivial(alice: Person) -> None:
    session = talked(alice.scope, "Hi")
    with scope(alice.scope):
        assert privacy.forget_session(session)["wrap_ups"] == 0
    assert job_of(alice.scope, session).state == JobState.TRIVIAL


def test_old_notes_expire_and_are_never_written_again(alice: Person, bob: Person, login: Login) -> None:
    now = clock.now()
    old, new = talked(alice.scope, PLAN, at=now - timedelta(days=40)), talked(alice.scope, PLAN)
    others = talked(bob.scope, PLAN, at=now - timedelta(days=40))
    with login("worker"):
        for who, session in ((alice, old), (alice, new), (bob, others)):
            run(makers.do(job_of(who.scope, session).id, who.scope))
        with scope(alice.scope):
            assert privacy.past("wrap_ups", now - timedelta(days=30)) == {"wrap_ups": 1}
            assert list(privacy.purge("wrap_ups", now - timedelta(days=30))) == [{"wrap_ups": 1}]
            assert list(privacy.purge("wrap_ups", now - timedelta(days=30))) == []
        backfill.run(later=nobody, at_once=True)
    assert job_of(alice.scope, old).state == JobState.EXPIRED
    assert wrap_ups(alice.scope, old) == []
    assert len(wrap_ups(alice.scope, new)) == len(wrap_ups(bob.scope, others)) == 1


def test_nothing_expires_on_the_day_it_was_written(alice: Person, login: Login) -> None:
    session = talked(alice.scope, PLAN)
    with login("worker"):
        run(makers.do(job_of(alice.scope, session).id, alice.scope))
    with scope(alice.scope):
        assert list(privacy.purge("wrap_ups", clock.now())) == [{"wrap_ups": 0}]
        with pytest.raises(actions.NotFound):
            actions.remove(wrap_ups(alice.scope, session)[0].id, JobState.EXPIRED)
    assert len(wrap_ups(alice.scope, session)) == 1
