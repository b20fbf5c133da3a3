"""Pooling is locked, then off, then on; who may read what; and what is left when it is turned off again: nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, ProgrammingError, connections, transaction

from memberintel.tenancy.context import SYSTEM, scope
from memberintel.usage import daily
from memberintel.usage.models import LedgerEntry, Run
from tests.conftest import Person, login_as, make_person
from tests.wrapups.pooling.conftest import behind, groups, noted, reviewed_by_lawyers, run, shown
from wrapups.models import LegalReview, PoolingChoice, SessionLog
from wrapups.pooling import choices, legal, review

Member = Callable[..., Person]

PLAN = "Move the welcome call to the first week of the membership"


@pytest.fixture
def only_pooling(settings: Any) -> None:
    settings.DAILY_STEPS = {review.KIND: settings.DAILY_STEPS[review.KIND]}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every sealed list of a wrap-up that is opened meanwhile."""
    seen: list[str] = []
    field: Any = SessionLog._meta.get_field("decisions")
    real = type(field).open_on

    def spied(self: Any, instance: Any, sealed: Any) -> Any:
        seen.append(self.attname)
        return real(self, instance, sealed)

    monkeypatch.setattr(type(field), "open_on", spied)
    return seen


def test_while_locked_or_off_nothing_is_read_computed_or_recorded(
    member: Member, only_pooling: None, opened: list[str]
) -> None:
    for _ in range(6):
        member(PLAN)
    runs_before = Run.objects.filter(kind=review.KIND).count()
    with scope(SYSTEM):
        calls = LedgerEntry.objects.count()
    recorded: LegalReview | None = None
    for state in ("locked", "off", "taken back"):
        if state == "off":
            recorded = reviewed_by_lawyers(running=False)
        elif recorded is not None and state == "taken back":
            legal.take_back(recorded, using="support")
        with login_as("worker"):
            assert list(daily.run(at_once=True)) == [], state
        assert run() == {}, state
        assert (shown(), groups(), behind(), opened) == ([], 0, 0, []), state
    assert Run.objects.filter(kind=review.KIND).count() == runs_before
    with scope(SYSTEM):
        assert LedgerEntry.objects.count() == calls


def test_turned_on_it_is_a_step_of_the_day_with_counts(
    lawyers: LegalReview, member: Member, only_pooling: None
) -> None:
    for _ in range(6):
        member(PLAN)
    with login_as("worker"):
        [step] = daily.run(at_once=True)
    assert (step.kind, step.counts, step.error) == ("pooling", {"customers": 6, "items": 6, "groups": 1}, "")


@pytest.mark.parametrize("how", ["turned off", "taken back", "another review"])
def test_what_ends_it_clears_the_pool_at_once(lawyers: LegalReview, member: Member, how: str) -> None:
    for _ in range(6):
        member(PLAN)
    run()
    assert len(shown()) == 1
    if how == "turned off":
        legal.turn(lawyers, on=False, using="support")
    elif how == "taken back":
        legal.take_back(lawyers, using="support")
    else:
        reviewed_by_lawyers(running=False)
    assert (shown(), groups(), behind()) == ([], 0, 0)


def test_a_review_that_was_taken_back_cannot_be_turned_on(lawyers: LegalReview) -> None:
    legal.take_back(lawyers, using="support")
    with pytest.raises(legal.Ended):
        legal.turn(lawyers, on=True, using="support")
    assert not choices.running()


def test_the_database_holds_the_lock_too(lawyers: LegalReview) -> None:
    with pytest.raises(DatabaseError, match="pooling is running"):
        call("support", "SELECT app.clear_pool()")
    legal.turn(lawyers, on=False, using="support")
    with login_as("worker"), scope(SYSTEM), pytest.raises(DatabaseError, match="pooling is not running"):
        call("default", "SELECT app.open_pool(gen_random_uuid(), 6)")


def call(alias: str, sql: str) -> Any:
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def test_fewer_than_five_cannot_be_asked_for(lawyers: LegalReview, member: Member, settings: Any) -> None:
    """Whatever number a worker gives the function."""
    for _ in range(4):
        member(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(review, "ENTERS", 1)
        assert run()["groups"] == 0
    assert (shown(), groups()) == ([], 0)


@pytest.mark.parametrize("table", ["pooled_support", "pooled_groups"])
def test_staff_and_pages_have_no_way_to_the_tables(lawyers: LegalReview, member: Member, table: str) -> None:
    who = member()
    with pytest.raises(ProgrammingError, match="permission denied"):
        call("support", f"SELECT count(*) FROM {table}")
    with scope(who.scope):
        if table == "pooled_groups":
            with pytest.raises(ProgrammingError, match="permission denied"):
                call("default", "SELECT count(*) FROM pooled_groups")
        with pytest.raises(ProgrammingError, match="permission denied"):
            call("default", f"INSERT INTO {table} DEFAULT VALUES")
        for function in ("app.shown_pool()", "app.clear_pool()", "app.open_pool(gen_random_uuid(), 6)"):
            with pytest.raises(ProgrammingError, match="permission denied"):
                call("default", f"SELECT * FROM {function}")


def test_leaving_is_bound_to_ones_own_tenant(lawyers: LegalReview, member: Member) -> None:
    people = [member(PLAN) for _ in range(6)]
    run()
    stranger = make_person(tier="pro")
    with scope(stranger.scope):
        assert call("default", "SELECT app.leave_pool()") == [(0,)]
    assert [behind(who) for who in people] == [1] * 6


def test_an_owners_no_outlives_every_legal_review(member: Member) -> None:
    who = member()
    with scope(who.scope):
        choices.choose(by=who.user.pk, takes_part=False)
        choices.choose(by=who.user.pk, takes_part=False)
        assert PoolingChoice.objects.count() == 2, "a yes and a no; saying it again adds nothing"
    for ground in LegalReview.Ground:
        row = reviewed_by_lawyers(ground)
        with scope(who.scope):
            assert not choices.standing().takes_part
        legal.take_back(row, using="support")


def test_a_colleagues_notes_go_with_the_tenant(lawyers: LegalReview, member: Member) -> None:
    """An owner's no is for everybody in the account."""
    owners = [member(PLAN) for _ in range(6)]
    colleague = make_person(tier="pro", tenant=owners[0].user.tenant, owner=False, name="colleague")
    noted(colleague.scope, PLAN)
    run()
    assert behind(colleague) == 1
    with scope(owners[0].scope):
        choices.choose(by=owners[0].user.pk, takes_part=False)
    assert (behind(colleague), behind(owners[0]), behind(owners[1])) == (0, 0, 1)
