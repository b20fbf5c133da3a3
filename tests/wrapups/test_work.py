"""The machinery of owed work is the same for every kind: claim, lease, attempt, record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from memberintel.llm.errors import Overloaded
from memberintel.tenancy.context import Scope, scope
from tests.conftest import Person
from tests.wrapups.stage import PLAN, job_of, run, talked
from wrapups import makers, tasks, work
from wrapups.jobs import Claim, Store
from wrapups.models import ClosingJob, JobKind, JobState

Login = Callable[[str], AbstractContextManager[None]]


def owed(person: Person, kind: JobKind) -> UUID:
    """A queued job of that kind for a session of its own."""
    return job_of(person.scope, talked(person.scope, PLAN, journal=True), kind).id


def do(person: Person, job: UUID, login: Login, make: work.Make, kind: str = JobKind.JOURNAL) -> work.Outcome:
    with login("worker"):
        return run(work.do(job, person.scope, {kind: make}))


def state(person: Person, job: UUID) -> tuple[str, str]:
    with scope(person.scope):
        row = ClosingJob.objects.get(id=job)
    return row.state, row.last_error


def test_a_kind_is_done_by_its_own_maker_and_recorded_under_its_claim(alice: Person, login: Login) -> None:
    job = owed(alice, JobKind.JOURNAL)
    stored: list[tuple[Claim, datetime]] = []

    async def make(held: Claim, scope: Scope) -> Store:
        return lambda held, now: stored.append((held, now))

    assert do(alice, job, login, make) == work.Written()
    assert state(alice, job) == (JobState.DONE, "")
    [(held, _)] = stored
    assert (held.job, held.kind, held.attempt) == (job, JobKind.JOURNAL, 1)
    assert do(alice, job, login, make) == work.NotOurs()
    assert len(stored) == 1


def test_a_result_that_cannot_be_stored_leaves_the_job_owed(alice: Person, login: Login) -> None:
    job = owed(alice, JobKind.MOOD)

    def full(held: Claim, now: datetime) -> None:
        raise OSError("no room")

    async def make(held: Claim, scope: Scope) -> Store:
        return full

    assert isinstance(do(alice, job, login, make, JobKind.MOOD), work.Later)
    assert state(alice, job) == (JobState.QUEUED, work.UNEXPECTED)


@pytest.mark.parametrize("error", [Overloaded(), work.NothingMade("nothing_there")])
def test_what_went_wrong_is_noted_and_tried_again(alice: Person, login: Login, error: Any) -> None:
    job = owed(alice, JobKind.JOURNAL)

    async def make(held: Claim, scope: Scope) -> Store:
        raise error

    assert isinstance(do(alice, job, login, make), work.Later)
    assert state(alice, job) == (JobState.QUEUED, error.code)


def test_work_nobody_can_do_is_left_alone(alice: Person, login: Login) -> None:
    job = owed(alice, JobKind.MOOD)
    with login("worker"):
        assert run(work.do(job, alice.scope, {JobKind.WRAP_UP: makers.MAKERS[JobKind.WRAP_UP]})) == (
            work.NotOurs()
        )
    assert state(alice, job) == (JobState.QUEUED, "")


def test_one_task_does_all_that_is_owed_for_a_session_and_none_waits_for_another(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, together = [uuid4() for _ in range(3)], asyncio.Barrier(3)
    done: list[UUID] = []
    again: list[list[UUID]] = []

    async def do(job: UUID, who: Scope) -> work.Outcome:
        await together.wait()
        if job == jobs[0]:
            raise ConnectionError
        done.append(job)
        return work.Later(9) if job == jobs[1] else work.Written()

    monkeypatch.setattr(makers, "do", do)
    monkeypatch.setattr(tasks, "nudge", lambda jobs, who, *, seconds: again.append(jobs))
    ids = {"tenant": str(alice.scope.tenant_id), "customer": str(alice.scope.customer_id)}
    with pytest.raises(ConnectionError):
        tasks.do_owed_work(*map(str, jobs), **ids)
    assert sorted(done) == sorted(jobs[1:])
    assert again == [[jobs[1]]]
