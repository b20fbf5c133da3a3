"""A day's sync, through the real SDK and the real database, against servers that answer as the real ones do."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import LazySettings
from django.db import connection

from brain.heartbeat import actions, sync, tasks
from brain.heartbeat.sources import Failed, Window
from brain.heartbeat.sources.memberpress import MemberPress, address
from brain.heartbeat.sources.stripe import Stripe
from brain.models import MetricSnapshot, Site, Source
from memberintel.lib import clock
from memberintel.lib.outbound import Unreachable
from memberintel.tenancy.context import scope
from memberintel.usage import daily
from memberintel.usage.models import Run
from tests.brain.heartbeat import pretend
from tests.brain.heartbeat.pretend import KEY, Pretended, coupon, discount, event, item, price, subscription
from tests.brain.heartbeat.stage import connected, days_of, numbers, site_of, source_of, told_of
from tests.conftest import Person
from tests.waiting import PATIENCE

NOW = datetime(2026, 11, 30, 3, 20, tzinfo=UTC)
YESTERDAY = date(2026, 11, 29)


@pytest.fixture(autouse=True)
def _nothing_else_is_due(login: Callable[[str], AbstractContextManager[None]]) -> None:
    """Tests leave what they made behind; a run would find it."""
    with login("owner"), connection.cursor() as cursor:
        cursor.execute("UPDATE sources SET due_at = NULL")


@pytest.fixture(autouse=True)
def _at(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(clock, "source", lambda: NOW)
    settings.HEARTBEAT_ALLOW_LOOPBACK = True
    settings.HEARTBEAT_RETRY_SECONDS = 0.01
    settings.HEARTBEAT_REQUEST_SECONDS = PATIENCE


@pytest.fixture
def stripe(settings: LazySettings) -> Iterator[Pretended]:
    with pretend.serving(pretend.stripe) as server:
        settings.STRIPE_API_BASE = server.url
        server.lists = {"subscriptions": [], "events": []}
        yield server


@pytest.fixture
def memberpress() -> Iterator[Pretended]:
    with pretend.serving(pretend.memberpress) as server:
        yield server


def at(day: int, hour: int = 12, zone: str = "UTC") -> int:
    return int(datetime(2026, 11, day, hour, tzinfo=ZoneInfo(zone)).timestamp())


def window(zone: str = "UTC", days: int = 30) -> Window:
    return Window(YESTERDAY - timedelta(days=days - 1), YESTERDAY, ZoneInfo(zone), NOW)


# --- Stripe ----------------------------------------------------------------------------------------------


def some(server: Pretended) -> None:
    """Subscriptions of every state, and what happened."""
    server.things = {
        "coupons/co_half": coupon(id="co_half", percent_off=50),
        "prices/price_t": price(
            None,
            id="price_t",
            billing_scheme="tiered",
            tiers_mode="graduated",
            tiers=[{"up_to": None, "unit_amount": 500, "flat_amount": 0}],
        ),
    }
    tiered = price(None, id="price_t", billing_scheme="tiered", tiers_mode="graduated")
    server.lists["subscriptions"] = [
        {**each, "id": f"sub_{number}"}
        for number, each in enumerate(
            [
                subscription(item(price(4900)), start_date=at(29), created=at(29)),
                subscription(item(price(4900)), discounts=[discount("co_half")]),
                subscription(item(price(58800, "year"))),
                subscription(item(tiered, 3)),
                subscription(item(price(900, currency="eur")), currency="eur"),
                subscription(item(price(500, currency="jpy")), currency="jpy"),
                subscription(item(price(4900)), status="past_due"),
                subscription(item(price(4900)), status="trialing", trial_end=at(30, 23)),
                subscription(item(price(4900)), trial_end=at(28), start_date=at(14)),
                subscription(item(price(4900)), status="past_due", trial_end=at(28), start_date=at(14)),
                subscription(item(price(4900)), pause_collection={"behavior": "void"}),
                subscription(item(price(4900)), status="unpaid"),
                subscription(item(price(4900)), status="incomplete"),
                subscription(item(price(1, recurring={"interval": "month", "usage_type": "metered"}))),
            ]
        )
    ]
    gone = "customer.subscription.deleted"
    failed = "invoice.payment_failed"
    server.lists["events"] = [
        event("evt_1", gone, at(29), subscription(ended_at=at(29), status="canceled")),
        event("evt_2", gone, at(29), subscription(ended_at=at(29), trial_end=at(30), status="canceled")),
        event("evt_3", gone, at(2), subscription(ended_at=at(2), trial_end=at(1), status="canceled")),
        event(
            "evt_4",
            gone,
            at(20),
            subscription(
                ended_at=at(20),
                trial_end=at(12),
                status="canceled",
                cancellation_details={"reason": "payment_failed"},
            ),
        ),
        event("evt_5", failed, at(29), {"id": "in_1"}),
        event("evt_6", failed, at(29, 15), {"id": "in_1"}),
        event("evt_7", failed, at(29), {"id": "in_2"}),
        event("evt_8", failed, at(28), {"id": "in_1"}),
        event("evt_9", "invoice.paid", at(29), {"id": "in_3"}),
    ]


def test_a_first_sync_brings_what_stands_and_thirty_days_of_what_happened(
    alice: Person, stripe: Pretended
) -> None:
    some(stripe)
    site = site_of(alice)
    source = connected(alice, site, "stripe", key=KEY)
    assert sync.run()["synced"] == 1
    found = days_of(alice, site, "stripe")
    assert sorted(found) == window().days
    newest = found[YESTERDAY]
    assert newest.counts == {
        "active_members": 10,
        "trials": 1,
        "paused": 1,
        "unpriced": 1,
        "new": 1,
        "churned": 1,
        "failed_payments": 2,
        "trials_ended": 1,
        "trials_converted": 0,
    }
    assert newest.mrr == {"USD": 4900 * 4 + 2450 + 4900 + 1500, "EUR": 900, "JPY": 500}
    assert found[date(2026, 11, 28)].counts == {
        "new": 1,
        "churned": 0,
        "failed_payments": 1,
        "trials_ended": 2,
        "trials_converted": 1,
    }
    assert found[date(2026, 11, 2)].counts["churned"] == 1
    assert found[date(2026, 11, 1)].counts["trials_converted"] == 1
    assert found[date(2026, 11, 20)].counts["churned"] == 0  # it never paid
    row = source_of(alice, source)
    assert (row.state, row.through, row.last_error) == ("connected", YESTERDAY, "")
    assert row.due_at == datetime(2026, 12, 1, 0, 30, tzinfo=UTC)
    told = told_of(alice, site)
    assert "Through 29 November 2026, from Stripe." in told
    assert "MRR: 284.50 USD on 29 November 2026." in told
    assert "MRR: 9.00 EUR on 29 November 2026." in told
    assert "MRR: 500 JPY on 29 November 2026." in told
    assert "not added together" in told


def test_the_day_is_that_of_the_sites_zone(stripe: Pretended) -> None:
    late = at(29, 23, "America/New_York")
    stripe.lists["events"] = [event("evt_1", "invoice.payment_failed", late, {"id": "in_1"})]
    in_new_york = Stripe({"key": KEY}).fetch(window("America/New_York")).days[-1]
    in_berlin = Stripe({"key": KEY}).fetch(window("Europe/Berlin")).days[-1]
    assert in_new_york.numbers.counts["failed_payments"] == 1
    assert in_berlin.numbers.counts["failed_payments"] == 0


def test_a_day_of_twenty_five_hours_is_whole() -> None:
    day = date(2026, 10, 25)
    over = Window(day, day, ZoneInfo("Europe/Berlin"), NOW)
    assert over.ended.astimezone(UTC) - over.began.astimezone(UTC) == timedelta(hours=25)


def test_lists_are_paged_through_and_not_held(stripe: Pretended) -> None:
    """Peak memory of 3,000 subscriptions beside that of 300: what is read is not kept."""

    class Many:
        def __init__(self, length: int) -> None:
            self.length = length

        def __len__(self) -> int:
            return self.length

        def __getitem__(self, asked: Any) -> Any:
            if isinstance(asked, slice):
                return [self[number] for number in range(*asked.indices(self.length))]
            if asked >= self.length:
                raise IndexError
            return {**subscription(item(price(100))), "id": f"sub_{asked}"}

    def peak(length: int) -> int:
        stripe.lists["subscriptions"] = Many(length)  # type: ignore[assignment]
        stripe.asked.clear()
        tracemalloc.start()
        got = Stripe({"key": KEY}).fetch(window())
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert got.days[-1].numbers.counts["active_members"] == length
        assert got.days[-1].numbers.mrr == {"USD": length * 100}
        return used

    peak(100)
    assert peak(2_000) < 1.5 * peak(200) + 500_000
    assert len([path for path in stripe.asked if "/subscriptions" in path]) == 2


def failing(server: Pretended, *replies: pretend.Reply) -> Failed:
    server.first = list(replies)
    with pytest.raises(Failed) as caught:
        Stripe({"key": KEY}).fetch(window())
    assert KEY not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("status", "told", "code", "again"),
    [
        (401, {"error": {"message": f"Invalid API Key provided: {KEY}"}}, "bad_key", False),
        (
            403,
            {"error": {"message": "The provided key does not have the required permissions"}},
            "no_right",
            False,
        ),
        (400, {"error": {"message": "no"}}, "refused", False),
        (200, {"object": "list", "data": [{"id": "sub_1", "object": "subscription"}]}, "unreadable", True),
    ],
)
def test_what_stripe_refuses(stripe: Pretended, status: int, told: Any, code: str, again: bool) -> None:
    failure = failing(stripe, (status, told, {}))
    assert (failure.code, failure.again) == (code, again)


@pytest.mark.parametrize(("status", "code"), [(429, "rate_limited"), (500, "broken")])
def test_what_stripe_may_do_later_is_tried_again_and_then_left(
    stripe: Pretended, status: int, code: str
) -> None:
    trouble = (status, {"error": {"message": "later"}}, {"Stripe-Should-Retry": "true"})
    stripe.first = [trouble]
    assert Stripe({"key": KEY}).fetch(window()).days
    assert failing(stripe, trouble, trouble, trouble).code == code


def test_stripe_that_is_away(settings: LazySettings) -> None:
    settings.STRIPE_API_BASE = "http://127.0.0.1:1"
    with pytest.raises(Failed) as caught:
        Stripe({"key": KEY}).check()
    assert caught.value.code == "unreachable"


def test_stripe_that_never_comes_to_an_end(stripe: Pretended, settings: LazySettings) -> None:
    some(stripe)
    settings.HEARTBEAT_SOURCE_SECONDS = -1.0
    with pytest.raises(Failed) as caught:
        Stripe({"key": KEY}).fetch(window())
    assert caught.value.code == "too_slow"


# --- MemberPress -----------------------------------------------------------------------------------------


def wordpress(day: int, hour: int = 12) -> str:
    return f"2026-11-{day:02d} {hour:02d}:00:00"


def plan(price: str, period: int, period_type: str, **more: Any) -> dict[str, Any]:
    told = {"id": 1, "status": "active", "trial": False, "trial_days": 0, "created_at": wordpress(1)}
    return {**told, "price": price, "period": period, "period_type": period_type, **more}


def members(server: Pretended) -> None:
    active = [{"id": n, "active_memberships": [{"id": 9}]} for n in range(250)]
    expired = {"status": "complete", "expires_at": wordpress(29)}
    server.lists = {
        "members": [
            *active,
            {"id": 900, "active_memberships": [], "latest_txn": expired},
            {"id": 901, "active_memberships": [], "latest_txn": {**expired, "status": "pending"}},
            {
                "id": 902,
                "active_memberships": [],
                "latest_txn": {**expired, "expires_at": "0000-00-00 00:00:00"},
            },
            {"id": 903, "active_memberships": [], "latest_txn": []},
        ],
        "subscriptions": [
            plan("29.00", 1, "months"),
            plan("290.00", 1, "years", created_at=wordpress(29)),
            plan("12.00", 2, "weeks"),
            plan("500.00", 1, "lifetime"),
            plan("29.00", 1, "months", status="suspended"),
            plan("29.00", 1, "months", status="pending", created_at=wordpress(29)),
            plan("29.00", 1, "months", trial="1", trial_days="14", created_at=wordpress(28)),
        ],
        "transactions": [
            {"id": 3, "status": "failed", "created_at": wordpress(29)},
            {"id": 2, "status": "complete", "created_at": wordpress(29)},
            {"id": 1, "status": "failed", "created_at": wordpress(27)},
        ],
    }


def test_memberpress_gives_what_its_api_says(alice: Person, memberpress: Pretended) -> None:
    members(memberpress)
    site = site_of(alice)
    connected(alice, site, "memberpress", url=memberpress.url, key=KEY, currency="GBP")
    assert sync.run()["synced"] == 1
    newest = days_of(alice, site, "memberpress")[YESTERDAY]
    assert newest.counts == {
        "active_members": 250,
        "trials": 1,
        "paused": 1,
        "new": 1,
        "churned": 1,
        "failed_payments": 1,
    }
    assert newest.mrr == {"GBP": 2900 + 2417 + 2600}
    assert sum("members?" in path for path in memberpress.asked) == 3


def test_a_long_list_of_transactions_is_left_once_it_is_past_the_days(memberpress: Pretended) -> None:
    members(memberpress)
    old = [{"id": n, "status": "failed", "created_at": "2020-01-01 00:00:00"} for n in range(1000)]
    memberpress.lists["transactions"] = [*memberpress.lists["transactions"], *old]
    given = MemberPress({"url": memberpress.url, "key": KEY, "currency": "USD"}).fetch(window())
    assert given.days[-1].numbers.counts["failed_payments"] == 1
    assert sum("transactions?" in path for path in memberpress.asked) == 1


@pytest.mark.parametrize(
    ("reply", "code", "again"),
    [
        ((401, {}, {}), "bad_key", False),
        ((404, b"<html>", {}), "no_api", False),
        ((302, b"", {"Location": "http://127.0.0.1/"}), "redirected", False),
        ((200, b"<html>Hello</html>", {}), "unreadable", True),
        ((200, b"[" * 100_000, {}), "unreadable", True),
        ((200, {"data": []}, {}), "unreadable", True),
        ((500, b"", {}), "broken", True),
    ],
)
def test_what_memberpress_refuses(
    memberpress: Pretended, reply: pretend.Reply, code: str, again: bool
) -> None:
    memberpress.first = [reply]
    with pytest.raises(Failed) as caught:
        MemberPress({"url": memberpress.url, "key": KEY, "currency": "USD"}).fetch(window())
    assert (caught.value.code, caught.value.again) == (code, again)


def test_a_busy_site_is_asked_again_after_the_time_it_names(memberpress: Pretended) -> None:
    members(memberpress)
    memberpress.first = [(503, b"", {}), (429, b"", {"Retry-After": "0"})]
    assert MemberPress({"url": memberpress.url, "key": KEY, "currency": "USD"}).fetch(window(days=2)).days


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("example.com", "https://example.com"),
        (" https://Example.com/ ", "https://example.com"),
        ("https://example.com/wp-json/mp/v1/", "https://example.com"),
        ("https://example.com/shop/", "https://example.com/shop"),
        ("https://example.com:8443", "https://example.com:8443"),
    ],
)
def test_the_address_as_people_type_it(typed: str, kept: str) -> None:
    assert address(typed) == kept


def test_an_address_that_leads_inside_is_refused_before_anything_is_sent(settings: LazySettings) -> None:
    settings.HEARTBEAT_ALLOW_LOOPBACK = False
    for inside in ("https://169.254.169.254", "http://127.0.0.1:6379", "https://localhost"):
        with pytest.raises(Unreachable):
            address(inside)


# --- the run ---------------------------------------------------------------------------------------------


def test_one_that_fails_leaves_its_numbers_and_holds_up_no_other(
    alice: Person, charlie: Person, stripe: Pretended, memberpress: Pretended
) -> None:
    some(stripe)
    theirs, hers = site_of(charlie), site_of(alice)
    numbers(alice, hers, YESTERDAY - timedelta(days=2), kind="stripe")
    before = told_of(alice, hers)
    with scope(alice.scope):
        Source.objects.filter(site_id=hers).delete()
    broken = connected(alice, hers, "stripe", key="rk_test_revoked")
    down = connected(alice, hers, "memberpress", url="http://127.0.0.1:1", key=KEY, currency="USD")
    connected(charlie, theirs, "stripe", key=KEY)
    counts = sync.run()
    assert (counts["failed"], counts["synced"]) == (2, 1)
    assert told_of(alice, hers) == before
    assert told_of(charlie, theirs)
    row = source_of(alice, broken)
    assert (row.state, row.last_error, row.through) == ("failing", "bad_key", None)
    assert row.due_at == NOW + timedelta(hours=24)
    assert source_of(alice, down).due_at == NOW + timedelta(hours=1)


def test_a_source_that_comes_back_gives_the_days_it_missed(
    alice: Person, stripe: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    some(stripe)
    site = site_of(alice)
    source = connected(alice, site, "stripe", key=KEY)
    sync.run()
    stripe.key = "another"
    monkeypatch.setattr(clock, "source", lambda: NOW + timedelta(days=1))
    assert sync.run()["failed"] == 1
    stripe.key = KEY
    monkeypatch.setattr(clock, "source", lambda: NOW + timedelta(days=3))
    assert sync.run()["synced"] == 1
    row = source_of(alice, source)
    assert (row.state, row.last_error, row.failures) == ("connected", "", 0)
    found = days_of(alice, site, "stripe")
    assert max(found) == YESTERDAY + timedelta(days=3)
    assert "active_members" not in found[YESTERDAY + timedelta(days=2)].counts  # nobody was there to count
    assert found[YESTERDAY + timedelta(days=2)].counts["new"] == 0
    assert sync.run() == {"due": 0, "synced": 0, "failed": 0, "busy": 0}


def test_two_runs_at_once_do_the_work_once(alice: Person, stripe: Pretended) -> None:
    some(stripe)
    site = site_of(alice)
    connected(alice, site, "stripe", key=KEY)
    with scope(alice.scope):
        Site.objects.filter(id=site).update(lease_until=NOW + timedelta(seconds=1))
    assert sync.run()["busy"] == 1
    assert stripe.asked == []
    with scope(alice.scope):  # the other was killed; its lease has run out
        Site.objects.filter(id=site).update(lease_until=NOW)
    assert sync.run()["synced"] == 1


def test_one_that_is_disconnected_while_it_is_asked_brings_nothing(
    alice: Person, stripe: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    some(stripe)
    site = site_of(alice)
    source = connected(alice, site, "stripe", key=KEY)
    real = Stripe.fetch

    def meanwhile(self: Stripe, asked: Window) -> Any:
        with scope(alice.scope):
            actions.disconnect(site, source, forget=False)
        return real(self, asked)

    monkeypatch.setattr(Stripe, "fetch", meanwhile)
    assert sync.run()["gone"] == 1
    assert days_of(alice, site, "stripe") == {}
    assert source_of(alice, source).state == "disconnected"


def test_a_worker_does_it_with_its_own_rights(
    alice: Person, stripe: Pretended, login: Callable[[str], AbstractContextManager[None]]
) -> None:
    some(stripe)
    site = site_of(alice)
    source = connected(alice, site, "stripe", key=KEY)
    with login("worker"):
        counts = sync.run()
    assert counts["synced"] == 1
    assert source_of(alice, source).through == YESTERDAY


def test_the_daily_run_has_it_as_a_step_and_a_run_is_recorded(
    alice: Person, stripe: Pretended, settings: LazySettings
) -> None:
    some(stripe)
    connected(alice, site_of(alice), "stripe", key=KEY)
    settings.DAILY_STEPS = {tasks.KIND: settings.DAILY_STEPS[tasks.KIND]}
    (step,) = daily.run(at_once=True)
    assert (step.kind, step.counts, step.error) == ("metrics_sync", {"synced": 1}, "")


def test_between_two_daily_runs_a_run_is_recorded_only_where_there_is_work(
    alice: Person, stripe: Pretended
) -> None:
    some(stripe)
    before = Run.objects.filter(kind=tasks.KIND).count()
    tasks.sync_again()
    assert Run.objects.filter(kind=tasks.KIND).count() == before
    connected(alice, site_of(alice), "stripe", key=KEY)
    tasks.sync_again()
    assert Run.objects.filter(kind=tasks.KIND).latest("id").counts == {"synced": 1}


def test_what_is_kept_is_sealed(alice: Person, stripe: Pretended) -> None:
    some(stripe)
    site = site_of(alice, name="Sturdy Kilns")
    connected(alice, site, "stripe", key=KEY)
    sync.run()
    with scope(alice.scope), connection.cursor() as cursor:
        for table in ("sites", "sources", "metric_snapshots", "heartbeats"):
            cursor.execute(
                f"SELECT to_jsonb(t)::text FROM {table} t WHERE tenant_id = %s", [alice.scope.tenant_id]
            )
            kept = json.dumps(cursor.fetchall())
            assert kept != "[]"
            for plain in ("Sturdy", KEY, "active_members", "Through 29"):
                assert plain not in kept
                assert plain.encode().hex() not in kept
        assert MetricSnapshot.objects.filter(site_id=site).count() == 30
