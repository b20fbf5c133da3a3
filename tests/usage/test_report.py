"""The report of a month: everybody's calls added up, and the alarms that ask for a decision."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from memberintel import report
from memberintel.tenancy.context import scope
from memberintel.usage import runs
from memberintel.usage.actions import record_call
from memberintel.usage.models import MonthlyReport, TenantMonth
from tests.conftest import Person
from tests.tenancy.databases import connected_as
from tests.tenancy.rows import saved
from tests.usage.test_charges import at
from tests.usage.test_ledger import record

YEARS = count(1971)
Login = Callable[[str], AbstractContextManager[None]]


@pytest.fixture
def month() -> date:
    """A month of its own, long ago."""
    return date(next(YEARS), 5, 1)


def called(who: Person, month: date, purpose: str, cost: int | None) -> None:
    moment = datetime(month.year, month.month, 17, tzinfo=UTC)
    with at(moment), scope(who.scope):
        record_call(replace(record(), purpose=purpose, cost_micros=cost, started_at=moment, model="reported"))


def wrapped_up(who: Person, month: date, number: int) -> None:
    """So many wrap-ups written in the month."""
    moment = datetime(month.year, month.month, 17, tzinfo=UTC)
    with connected_as("owner"), at(moment), scope(who.scope):
        for _ in range(number):
            session = saved(apps.get_model("chat", "Session"), None, closed_at=moment, close_reason="ended")
            saved(apps.get_model("wrapups", "SessionLog"), session.pk)


def made(login: Login, month: date) -> MonthlyReport:
    with login("worker"):
        return report.make(month)


def codes(found: MonthlyReport) -> set[str]:
    return {alarm["code"] for alarm in found.alarms}


def of(who: Person, month: date) -> TenantMonth:
    with connected_as("worker"), scope(who.scope):
        return TenantMonth.objects.get(month=month)


def test_calls_of_all_accounts_are_added_up(
    alice: Person, bob: Person, charlie: Person, month: date, login: Login
) -> None:
    called(alice, month, "chat", 900_000)
    called(bob, month, "chat", 50_000)
    called(bob, month, "wrap_up", 50_000)
    called(charlie, month, "chat", None)
    called(charlie, report._before(month, 1), "chat", 7)
    found = made(login, month)
    assert (found.tenants, found.cost_micros, found.pro_customers) == (2, 1_000_000, 2)
    assert [(row["purpose"], row["calls"], row["cost_micros"], row["unpriced"]) for row in found.sums] == [
        ("chat", 3, 950_000, 1),
        ("wrap_up", 1, 50_000, 0),
    ]
    assert (of(alice, month).cost_micros, of(alice, month).wrap_up_micros) == (1_000_000, 50_000)
    assert (of(charlie, month).calls, of(charlie, month).unpriced) == (1, 1)
    assert "wrap_up_spend" not in codes(found)


def test_made_again_it_takes_the_place_of_the_former(alice: Person, month: date, login: Login) -> None:
    called(alice, month, "chat", 1)
    made(login, month)
    called(alice, month, "chat", 2)
    made(login, month)
    assert MonthlyReport.objects.get(month=month).cost_micros == 3
    assert of(alice, month).cost_micros == 3


def test_an_account_whose_wrap_ups_are_dear_rings(alice: Person, month: date, login: Login) -> None:
    called(alice, month, "chat", 89)
    called(alice, month, "wrap_up", 11)
    found = made(login, month)
    (alarm,) = [alarm for alarm in found.alarms if alarm["code"] == "wrap_up_spend"]
    assert str(alice.scope.tenant_id) in alarm["says"]
    assert "11%" in alarm["says"]


def test_many_wrap_ups_ring_in_the_third_month_in_a_row(alice: Person, month: date, login: Login) -> None:
    months = [report._before(month, number) for number in (2, 1, 0)]
    for each in months:
        called(alice, each, "chat", 1)
        wrapped_up(alice, each, 31)
    rang = ["wrap_ups_per_customer" in codes(made(login, each)) for each in months]
    assert rang == [False, False, True]
    newest = MonthlyReport.objects.get(month=month)
    assert (newest.pro_customers, newest.pro_wrap_ups) == (1, 31)
    assert "wrap_ups_held" in codes(newest)
    assert newest.most_held >= 93


def test_a_gap_in_the_months_does_not_ring(month: date, login: Login) -> None:
    def told(number: int) -> None:
        with login("worker"):
            each = report._before(month, number)
            MonthlyReport.objects.create(month=each, pro_customers=1, pro_wrap_ups=99)

    for number in (3, 1, 0):
        told(number)
    assert list(report._many(month)) == []
    told(2)
    assert [alarm["code"] for alarm in report._many(month)] == ["wrap_ups_per_customer"]


def test_customers_who_say_that_something_was_forgotten_ring(
    alice: Person, bob: Person, charlie: Person, month: date, login: Login
) -> None:
    for who, times in ((alice, 2), (bob, 1), (charlie, 0)):
        called(who, month, "chat", 1)
        said_forgotten(who, month, times)
    said_forgotten(charlie, report._before(month, 1), 1)
    (alarm,) = [alarm for alarm in made(login, month).alarms if alarm["code"] == "forgotten"]
    assert "said 3 times" in alarm["says"]
    assert f"(accounts: 1), most often in account {alice.scope.tenant_id} (3)" in alarm["says"]


def said_forgotten(who: Person, month: date, times: int) -> None:
    """So many reports in the middle of the month."""
    moment = datetime(month.year, month.month, 17, tzinfo=UTC)
    with connected_as("owner"), at(moment), scope(who.scope):
        for _ in range(times):
            session = saved(apps.get_model("chat", "Session"), None, closed_at=moment, close_reason="ended")
            saved(apps.get_model("chat", "ForgotReport"), session.pk, at=moment)


def result(folder: Path, day: str, passed: int, **more: Any) -> None:
    told = {"model": "gemini:gemini-2.5-flash", "prompt_version": "3", "date": day, "suite": "quality"}
    told |= {"passed": passed, "total": 100, "rate": passed / 100} | more
    (folder / f"{uuid4().hex}.json").write_text(json.dumps(told))


def test_two_releases_below_the_mark_ring(tmp_path: Path) -> None:
    result(tmp_path, "2026-12-03", 84)
    assert list(report._quality(report.releases(tmp_path))) == []
    result(tmp_path, "2026-12-01", 90)
    result(tmp_path, "2026-12-02", 80)
    (alarm,) = report._quality(report.releases(tmp_path))
    assert "80% (gemini:gemini-2.5-flash, 2026-12-02) and 84%" in alarm["says"]
    result(tmp_path, "2026-12-04", 85)
    assert list(report._quality(report.releases(tmp_path))) == []


def test_files_that_are_no_results_of_a_real_model_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[1]")
    (tmp_path / "c.json").write_bytes(b"\xff")
    result(tmp_path, "2026-12-01", 10, model="offline:extractive")
    result(tmp_path, "2026-12-01", 10, suite="pathway")
    result(tmp_path, "2026-12-01", 0, total=0)
    assert report.releases(tmp_path) == []
    assert report.releases(tmp_path / "nowhere") == []


def test_the_step_makes_this_month_and_the_last_until_it_is_whole(
    alice: Person, login: Login, month: date
) -> None:
    following = (month + timedelta(days=40)).replace(day=1)
    called(alice, month, "chat", 5)

    def step(day: int) -> set[date]:
        before = {row.month: row.made_at for row in MonthlyReport.objects.all()}
        morning = datetime(following.year, following.month, day, 4, tzinfo=UTC)
        with login("worker"), at(morning), runs.recorded(f"test_{uuid4().hex[:20]}") as run:
            report.step(run)
        return {row.month for row in MonthlyReport.objects.all() if before.get(row.month) != row.made_at}

    with at(datetime(month.year, month.month, 30, 4, tzinfo=UTC)):
        made(login, month)
    assert step(1) == {month, following}
    assert step(2) == {following}


def test_the_command_prints_the_report(alice: Person, month: date, settings: Any, login: Login) -> None:
    settings.PROCESS = "worker"
    called(alice, month, "wrap_up", 2_000_000)
    out = StringIO()
    with login("worker"):
        call_command("monthly_report", "--month", f"{month:%Y-%m}", stdout=out)
        assert f"{month:%B %Y}: $2.00, 1 accounts" in out.getvalue()
        assert "ALARM wrap_up_spend" in out.getvalue()
        with pytest.raises(CommandError, match="has not begun"):
            call_command("monthly_report", "--month", "9990-01")
        with pytest.raises(CommandError):
            call_command("monthly_report", "--month", "soon")
    settings.PROCESS = "web"
    with pytest.raises(CommandError, match="MEMBERINTEL_PROCESS=worker"):
        call_command("monthly_report")


def test_only_the_worker_looks_across_accounts(month: date) -> None:
    with pytest.raises(DatabaseError, match="permission denied"):
        report.make(month)
