"""Sums of the ledger, and the plot drawn of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from django.core.cache import cache
from django.test import Client

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.usage import spending
from memberintel.usage.actions import CallRecord, record_call
from memberintel.usage.plot import plot
from memberintel.usage.spending import Sums, dollars
from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person
from tests.usage.test_charges import at

DAY = date(2026, 3, 1)


def sums(day: date = DAY, purpose: str = "chat", cost: int = 0, calls: int = 1) -> Sums:
    return Sums(day, purpose, "offline:extractive", calls, 0, 10, 5, 0, cost, 0)


def call(purpose: str, *, cost: int | None, outcome: str = "complete") -> CallRecord:
    return CallRecord(
        session=None,
        turn=None,
        purpose=purpose,
        provider="gemini",
        model="test-model",
        attempt=1,
        input_tokens=100,
        output_tokens=10,
        cached_tokens=40,
        cache_write_tokens=0,
        estimated=False,
        cost_micros=cost,
        outcome=outcome,
        error_code="" if outcome == "complete" else "overloaded",
        error_reason="",
        request_digest="b" * 64,
        request_bytes=100,
        started_at=clock.now(),
        duration_ms=10,
    )


@pytest.fixture(autouse=True)
def _one_day() -> Iterator[None]:
    """No day ends while a test runs."""
    with at(clock.now()):
        yield


def test_calls_of_all_tenants_are_summed(alice: Person, charlie: Person) -> None:
    today = clock.now().date()
    before = {(s.purpose, s.model): s for s in spending.by_day(today, today)}.get(
        ("judge", "gemini:test-model")
    )
    assert before is None
    for person, cost in ((alice, 1_000_000), (charlie, 500_000)):
        with scope(person.scope):
            record_call(call("judge", cost=cost))
    with scope(alice.scope):
        record_call(call("judge", cost=None, outcome="failed"))
    found = next(s for s in spending.by_day(today, today) if s.purpose == "judge")
    assert (found.calls, found.failed, found.unpriced, found.cost_micros) == (3, 1, 1, 1_500_000)
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (300, 120, 30)


def test_days_that_are_over_are_read_once(django_assert_num_queries: object) -> None:
    cache.clear()
    today = clock.now().date()
    first = today - timedelta(days=5)
    spending.by_day(first, today - timedelta(days=2))
    from django.db import connections
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connections["support"]) as asked:
        spending.by_day(first, today - timedelta(days=2))
        assert len(asked) == 0
        spending.by_day(first, today)
    assert len(asked) == 1


def test_the_page_shows_a_month(alice: Person) -> None:
    with scope(alice.scope):
        record_call(call("embed", cost=123_450_000))
    desk = sign_in(make_staff())
    page = desk.get("/admin/usage/ledgerentry/sums/").content.decode()
    assert "$123.45" in page
    assert "<rect" in page
    for month in ("nonsense", "1999-01", "2026-13", "\x00"):
        assert desk.get("/admin/usage/ledgerentry/sums/", {"month": month}).status_code == 200
    assert Client().get("/admin/usage/ledgerentry/sums/").status_code == 302


def test_bars_stand_on_each_other() -> None:
    drawn = plot([sums(cost=30), sums(purpose="title", cost=20)], DAY, DAY + timedelta(days=2))
    chat, title = drawn.pieces
    assert chat.height / title.height == pytest.approx(1.5, rel=0.01)
    assert chat.y == pytest.approx(title.y + title.height, abs=0.2)
    assert drawn.legend == ((1, "chat"), (2, "title"))
    assert drawn.what == "Cost a day"


def test_without_a_price_calls_are_drawn() -> None:
    drawn = plot([sums(calls=7)], DAY, DAY)
    assert "Calls" in drawn.what
    assert drawn.pieces[0].says == "1 Mar: chat 7"
    assert [level.says for level in drawn.levels] == ["0", "5", "10"]


def test_nothing_is_drawn_of_nothing() -> None:
    assert plot([], DAY, DAY + timedelta(days=29)).pieces == ()


@pytest.mark.parametrize(
    ("micros", "words"),
    [(0, "$0.00"), (1, "$0.0000"), (900, "$0.0009"), (150_000, "$0.15"), (1_234_567_890, "$1,234.57")],
)
def test_dollars(micros: int, words: str) -> None:
    assert dollars(micros) == words
