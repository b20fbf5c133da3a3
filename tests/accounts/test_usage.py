"""Usage as a customer sees it: the team's budgets, and nobody's calls but their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.test import Client

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.usage import charges
from memberintel.usage.actions import record_call
from memberintel.usage.models import Kind
from tests.api.calls import bearer, browser, made_token
from tests.conftest import Person, make_person
from tests.usage.test_charges import at, tier_with
from tests.usage.test_ledger import record

NOON = datetime(2026, 12, 24, 12, tzinfo=UTC)


def used(who: Person, kind: Kind, number: int) -> None:
    with scope(who.scope):
        assert all(charges.take(kind, uuid4()) for _ in range(number))


def told(client: Client) -> Any:
    return client.get("/api/v1/usage/").json()


def test_the_page_tells_used_left_and_when_it_is_whole_again() -> None:
    who = make_person(tier=tier_with(chat_turn=1200, wrap_up_generation=2))
    with at(NOON):
        used(who, Kind.CHAT_TURN, 3)
        used(who, Kind.WRAP_UP, 2)
        page = browser(who).get("/usage/").content.decode()
    assert "December 2026" in page
    assert "1 January at 0:00 UTC" in page
    assert "<b>3</b> of 1,200 used, 1,197 left" in " ".join(page.split())
    assert "those that end now get no wrap-up" in page
    assert "<b>0</b> used, no limit" in " ".join(page.split())
    assert "No model was called for you this month." in page
    assert 'href="/usage/" aria-current="page"' in page


def test_the_api_tells_the_same(alice: Person) -> None:
    used(alice, Kind.CHAT_TURN, 2)
    found = told(bearer(made_token(alice, "read").secret))
    month = charges.this_month()
    assert (found["month"], found["renews"]) == (month.isoformat(), charges.renewal(month).isoformat())
    budgets = {row["kind"]: row for row in found["budgets"]}
    limit = budgets["chat_turn"]["limit"]
    assert budgets["chat_turn"] == {"kind": "chat_turn", "limit": limit, "used": 2, "left": limit - 2}
    assert budgets.keys() == set(Kind.values)


def test_a_team_shares_budgets_and_each_sees_their_own_calls(
    alice: Person, bob: Person, charlie: Person
) -> None:
    used(alice, Kind.CHAT_TURN, 1)
    for who, purpose in ((alice, "chat"), (alice, "title"), (alice, "chat"), (bob, "wrap_up")):
        with scope(who.scope):
            record_call(replace(record(), purpose=purpose, cached_tokens=7, cache_write_tokens=2))
    with scope(alice.scope):
        record_call(replace(record(), purpose="chat", outcome="failed", error_code="overloaded"))
        record_call(replace(record(), purpose="chat", started_at=datetime(2020, 1, 1, tzinfo=UTC)))
    assert [(each["purpose"], each["calls"]) for each in told(browser(alice))["calls"]] == [
        ("chat", 3),
        ("title", 1),
    ]
    chat = told(browser(alice))["calls"][0]
    assert {name: chat[name] for name in chat if name != "purpose"} == {
        "calls": 3,
        "failed": 1,
        "input_tokens": 34,
        "cached_tokens": 14,
        "output_tokens": 15,
    }
    of_bob = told(browser(bob))
    assert [each["purpose"] for each in of_bob["calls"]] == ["wrap_up"]
    assert of_bob["budgets"][0]["used"] == 1
    assert told(browser(charlie))["budgets"][0]["used"] == 0


def test_the_clock_of_a_budget_is_utc(alice: Person) -> None:
    used(alice, Kind.MOOD, 1)
    with scope(alice.scope):
        budget = charges.left(Kind.MOOD)
    assert budget.renews == charges.renewal(clock.now().date())
