"""What was missed is found and written: once, also when run twice, killed, or without the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from memberintel.usage import runs
from memberintel.usage.models import Run
from tests.conftest import Person
from tests.wrapups.stage import ANSWER, PLAN, job_of, model, run, talked, wrap_ups
from wrapups import backfill, jobs, makers, work
from wrapups.domain import states
from wrapups.models import ClosingJob, JobKind, JobState

Login = Callable[[str], AbstractContextManager[None]]


class Later:
    """Remembers what would be put on the queue."""

    def __init__(self) -> None:
        self.jobs: list[UUID] = []

    def __call__(self, jobs: Sequence[UUID], scope: Scope, *, seconds: float) -> None:
        self.jobs += jobs


def change(person: Person, session: UUID, **fields: Any) -> None:
    with scope(person.scope):
        ClosingJob.objects.filter(session_id=session, kind=JobKind.WRAP_UP).update(**fields)


def fill(login: Login, *, at_once: bool = False, later: Later | None = None) -> dict[str, int]:
    with login("worker"):
        counts = backfill.run(later=later or Later(), at_once=at_once)
    assert counts is not None
    return counts


OLD = timedelta(minutes=11)


def test_what_waits_longer_than_ten_minutes_is_written(alice: Person, login: Login) -> None:
    old, fresh = talked(alice.scope, PLAN), talked(alice.scope, PLAN)
    change(alice, old, created_at=clock.now() - OLD)
    fill(login)
    assert len(wrap_ups(alice.scope, old)) == 1
    assert wrap_ups(alice.scope, fresh) == []
    fill(login, at_once=True)
    assert len(wrap_ups(alice.scope, fresh)) == 1


@pytest.mark.parametrize("state", [JobState.TRIVIAL, JobState.OFF_RECORD, JobState.DONE])
@pytest.mark.parametrize("other", [JobState.DELETED, JobState.EXPIRED])
def test_only_owed_work_is_taken(alice: Person, login: Login, state: str, other: str) -> None:
    for final in (state, other):
        session = talked(alice.scope, PLAN)
        change(alice, session, state=final, created_at=clock.now() - OLD)
        fill(login, at_once=True)
        assert wrap_ups(alice.scope, session) == []
        assert job_of(alice.scope, session).state == final


def test_a_job_somebody_holds_is_left_to_them(alice: Person, login: Login) -> None:
    session = talked(alice.scope, PLAN)
    change(alice, session, lease_until=clock.now() + timedelta(minutes=1))
    fill(login, at_once=True)
    assert wrap_ups(alice.scope, session) == []


def test_a_job_whose_worker_was_killed_is_finished(alice: Person, login: Login) -> None:
    session = talked(alice.scope, PLAN)
    with login("worker"), scope(alice.scope):
        dead = jobs.claim(
            job_of(alice.scope, session).id, tuple(makers.MAKERS), clock.now() - timedelta(minutes=1)
        )
    assert isinstance(dead, jobs.Claim)
    fill(login, at_once=True)
    assert len(wrap_ups(alice.scope, session)) == 1
    assert job_of(alice.scope, session).attempt == 2


def test_what_failed_is_tried_five_more_times(alice: Person, login: Login, settings: Any) -> None:
    session = talked(alice.scope, PLAN)
    change(alice, session, state=JobState.FAILED, attempt=states.TRIES)
    with model(settings, "still-down", {"error": "unavailable"}):
        for tried in range(1, 8):
            fill(login)
            assert job_of(alice.scope, session).daily_tries == min(tried, states.DAILY_TRIES)
            assert job_of(alice.scope, session).state == JobState.FAILED


def test_what_failed_is_written_when_the_model_is_back(alice: Person, login: Login) -> None:
    session = talked(alice.scope, PLAN)
    change(alice, session, state=JobState.FAILED, attempt=states.TRIES)
    fill(login)
    assert len(wrap_ups(alice.scope, session)) == 1
    assert job_of(alice.scope, session).state == JobState.DONE


def test_what_can_be_tried_again_goes_to_the_queue(alice: Person, login: Login, settings: Any) -> None:
    session = talked(alice.scope, PLAN)
    later = Later()
    with model(settings, "busy", {"error": "overloaded"}):
        fill(login, at_once=True, later=later)
    assert job_of(alice.scope, session).id in later.jobs


def test_jobs_of_all_customers_are_found_and_written_in_their_scope(
    alice: Person, bob: Person, charlie: Person, login: Login, settings: Any
) -> None:
    sessions = [(who, talked(who.scope, PLAN)) for who in (alice, bob, charlie)]
    with model(settings, "all", {"json": ANSWER}):
        counts = fill(login, at_once=True)
    assert counts["written"] >= 3
    for who, session in sessions:
        assert len(wrap_ups(who.scope, session)) == 1


def test_two_at_once_do_no_harm(alice: Person, login: Login) -> None:
    session = talked(alice.scope, PLAN)
    with login("worker"), runs.recorded(backfill.KIND):
        assert backfill.run(later=Later(), at_once=True) is None
    assert wrap_ups(alice.scope, session) == []
    fill(login, at_once=True)
    fill(login, at_once=True)
    assert len(wrap_ups(alice.scope, session)) == 1


def test_a_run_is_recorded_with_its_counts(alice: Person, login: Login) -> None:
    talked(alice.scope, PLAN)
    fill(login, at_once=True)
    row = Run.objects.filter(kind=backfill.KIND).latest("started_at")
    assert row.finished_at is not None
    assert row.counts["written"] >= 1
    assert row.error == ""


def test_a_run_that_breaks_says_so(alice: Person, login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(job: UUID, scope: Scope) -> work.Outcome:
        raise OSError("the disk is full of secrets")

    talked(alice.scope, PLAN)
    monkeypatch.setattr(makers, "do", broken)
    with login("worker"), pytest.raises(BaseExceptionGroup):
        backfill.run(later=Later(), at_once=True)
    row = Run.objects.filter(kind=backfill.KIND).latest("started_at")
    assert row.finished_at is not None
    assert row.error
    assert "secrets" not in row.error


def test_more_than_a_page_is_written(alice: Person, login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "_PAGE", 2)
    sessions = [talked(alice.scope, PLAN) for _ in range(5)]
    seen: list[tuple[int, int]] = []
    with login("worker"):
        backfill.run(later=Later(), at_once=True, progress=lambda done, total: seen.append((done, total)))
    assert all(len(wrap_ups(alice.scope, session)) == 1 for session in sessions)
    assert seen[-1][0] == seen[-1][1] >= 5


def test_the_command_needs_the_workers_login(settings: Any) -> None:
    settings.PROCESS = "web"
    with pytest.raises(CommandError, match="MEMBERINTEL_PROCESS=worker"):
        call_command("backfill_wrapups")


def test_the_command_says_what_it_did(alice: Person, login: Login, settings: Any) -> None:
    settings.PROCESS = "worker"
    session = talked(alice.scope, PLAN)
    out = StringIO()
    with login("worker"):
        call_command("backfill_wrapups", "--now", stdout=out)
    assert "written" in out.getvalue()
    assert len(wrap_ups(alice.scope, session)) == 1


def test_the_sweepers_function_gives_ids_only(alice: Person) -> None:
    talked(alice.scope, PLAN)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM app.owed_jobs('{wrap_up}', now(), now(), %s, %s, 9)", [UUID(int=0), UUID(int=0)]
        )
        assert [column.name for column in cursor.description] == ["id", "tenant_id", "customer_id"]
        assert all(isinstance(value, UUID) for row in cursor.fetchall() for value in row)


def test_a_write_of_nothing_owed_is_nobodys(alice: Person, login: Login) -> None:
    with login("worker"):
        assert run(makers.do(UUID(int=5), alice.scope)) == work.NotOurs()
