"""A wrap-up is one unit of the month's budget: reserved before the model is asked, given back when none comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import Tier
from memberintel.usage import charges
from memberintel.usage.models import Kind, TierBudget
from tests.conftest import Person, make_person
from tests.wrapups.stage import ANSWER, PLAN, job_of, model, run, talked, wrap_ups
from wrapups import backfill, jobs, makers, privacy, work
from wrapups.models import ClosingJob, JobKind, JobState

Login = Callable[[str], AbstractContextManager[None]]


@pytest.fixture
def budget(login: Login) -> Any:
    """Sets what the tier of `dora` may have in a month."""
    key = f"tier-{uuid4().hex[:8]}"
    with login("owner"):
        tier = Tier.objects.create(key=key, name="Test")
        row = TierBudget.objects.create(tier=tier, kind=Kind.WRAP_UP, monthly_limit=1)

    def change(limit: int | None) -> None:
        with login("owner"):
            TierBudget.objects.filter(pk=row.pk).update(monthly_limit=limit)

    change.tier = key  # type: ignore[attr-defined]
    return change


@pytest.fixture
def dora(budget: Any) -> Person:
    """Of a tenant with one wrap-up a month."""
    return make_person(tier=budget.tier, name="dora")


def used(who: Person) -> int:
    with scope(who.scope):
        return charges.left(Kind.WRAP_UP).used


def write(who: Person, session: UUID, login: Login) -> work.Outcome:
    job = job_of(who.scope, session).id
    with login("worker"):
        return run(makers.do(job, who.scope))


def state(who: Person, session: UUID) -> str:
    return job_of(who.scope, session).state


def fill(login: Login) -> None:
    def later(jobs: Sequence[UUID], scope: Any, *, seconds: float) -> None:
        """Nothing is queued."""

    with login("worker"):
        backfill.run(later=later, at_once=True)


def test_one_unit_for_a_session_however_often_it_is_tried(dora: Person, login: Login, settings: Any) -> None:
    session = talked(dora.scope, PLAN)
    with model(settings, f"flaky-{uuid4().hex}", {"error": "overloaded"}, {"json": ANSWER}):
        assert isinstance(write(dora, session, login), work.Later)
        assert used(dora) == 1
        assert write(dora, session, login) == work.Written()
    assert used(dora) == 1


def test_without_a_budget_the_model_is_not_asked_and_the_state_says_why(
    dora: Person, login: Login, budget: Any
) -> None:
    first, second = talked(dora.scope, PLAN), talked(dora.scope, PLAN)
    assert write(dora, first, login) == work.Written()
    assert write(dora, second, login) == work.Unfunded()
    assert state(dora, second) == JobState.UNFUNDED
    assert job_of(dora.scope, second).attempt == 0
    fill(login)
    assert state(dora, second) == JobState.UNFUNDED
    assert wrap_ups(dora.scope, second) == []
    budget(2)
    fill(login)
    assert state(dora, second) == JobState.DONE
    assert used(dora) == 2


def test_after_a_week_a_budget_that_is_back_comes_too_late(dora: Person, login: Login, budget: Any) -> None:
    budget(0)
    session = talked(dora.scope, PLAN)
    assert write(dora, session, login) == work.Unfunded()
    budget(5)
    with scope(dora.scope):
        ClosingJob.objects.update(created_at=clock.now() - timedelta(days=7, seconds=1))
    fill(login)
    assert state(dora, session) == JobState.UNFUNDED
    with scope(dora.scope):
        ClosingJob.objects.update(created_at=clock.now() - timedelta(days=6, hours=23))
    fill(login)
    assert state(dora, session) == JobState.DONE


def test_the_sweepers_function_passes_over_what_is_too_old(dora: Person, login: Login, budget: Any) -> None:
    budget(0)
    session = talked(dora.scope, PLAN)
    write(dora, session, login)
    job = job_of(dora.scope, session).id
    now = clock.now()
    for at, found in ((now, True), (now + timedelta(days=6), True), (now + timedelta(days=8), False)):
        due = jobs.Due((JobKind.WRAP_UP,), at, at)
        assert (job in [row[0] for row in due.page(None, 10_000)]) is found


def test_what_has_failed_gives_its_unit_back_and_takes_it_again(
    dora: Person, login: Login, settings: Any
) -> None:
    session = talked(dora.scope, PLAN)
    with model(settings, f"refusing-{uuid4().hex}", {"error": "refused"}):
        assert write(dora, session, login) == work.Failed("refused")
    assert used(dora) == 0
    fill(login)
    assert state(dora, session) == JobState.DONE
    assert used(dora) == 1


def test_a_failed_one_whose_budget_went_elsewhere_is_unfunded(
    dora: Person, login: Login, settings: Any
) -> None:
    failed, other = talked(dora.scope, PLAN), talked(dora.scope, PLAN)
    with model(settings, f"refusing-{uuid4().hex}", {"error": "refused"}):
        write(dora, failed, login)
    assert write(dora, other, login) == work.Written()
    assert write(dora, failed, login) == work.Unfunded()
    assert state(dora, failed) == JobState.UNFUNDED


def test_many_at_once_never_spend_more_than_there_is(dora: Person, login: Login, budget: Any) -> None:
    budget(3)
    owed = [job_of(dora.scope, talked(dora.scope, PLAN)).id for _ in range(8)]

    async def all_of_them() -> list[work.Outcome]:
        return list(await asyncio.gather(*(makers.do(job, dora.scope) for job in owed)))

    with login("worker"):
        outcomes = run(all_of_them())
    assert outcomes.count(work.Written()) == 3
    assert outcomes.count(work.Unfunded()) == 5
    assert used(dora) == 3


def test_a_tier_changed_in_the_middle_of_the_month_counts_at_once(
    dora: Person, login: Login, budget: Any
) -> None:
    for limit, outcome in (
        (1, work.Written()),
        (1, work.Unfunded()),
        (2, work.Written()),
        (1, work.Unfunded()),
    ):
        budget(limit)
        assert write(dora, talked(dora.scope, PLAN), login) == outcome


def test_what_is_imported_costs_nothing(dora: Person, login: Login, budget: Any) -> None:
    budget(0)
    session = talked(dora.scope, PLAN)
    with scope(dora.scope):
        ClosingJob.objects.filter(session_id=session).update(charged=False)
    assert write(dora, session, login) == work.Written()
    assert used(dora) == 0


def test_a_session_erased_before_its_notes_gives_the_unit_back(
    dora: Person, login: Login, settings: Any
) -> None:
    session = talked(dora.scope, PLAN)
    with model(settings, f"flaky-{uuid4().hex}", {"error": "overloaded"}):
        write(dora, session, login)
    assert used(dora) == 1
    with scope(dora.scope), transaction.atomic():
        privacy.forget_session(session)
    assert used(dora) == 0


def test_a_result_that_is_not_stored_is_not_charged_twice(dora: Person, login: Login) -> None:
    """A worker that dies after its call: the next claim finds the unit it reserved."""
    session = talked(dora.scope, PLAN)
    job = job_of(dora.scope, session).id
    with login("worker"), scope(dora.scope):
        assert isinstance(jobs.claim(job, tuple(makers.MAKERS), clock.now()), jobs.Claim)
        again = jobs.claim(job, tuple(makers.MAKERS), clock.now() + timedelta(minutes=5))
        assert isinstance(again, jobs.Claim)
    assert used(dora) == 1
