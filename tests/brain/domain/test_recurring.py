"""What a subscription brings a month, case by case, in minor units."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.domain.heartbeat import recurring
from brain.domain.heartbeat.recurring import Lookups, Unpriced
from tests.brain.heartbeat.pretend import coupon, discount, item, price, subscription

NOW = 1_800_000_000


def monthly(
    of: dict[str, Any], coupons: dict[str, Any] | None = None, prices: dict[str, Any] | None = None
) -> Decimal:
    lookups = Lookups((coupons or {}).__getitem__, (prices or {}).__getitem__)
    return recurring.monthly(of, of["items"]["data"], NOW, lookups)


def whole(of: dict[str, Any], **known: Any) -> int:
    return recurring.whole(monthly(of, **known))


@pytest.mark.parametrize(
    ("interval", "count", "amount", "a_month"),
    [
        ("month", 1, 4900, 4900),
        ("month", 3, 9000, 3000),
        ("month", 6, 10000, 1667),
        ("year", 1, 49000, 4083),
        ("year", 2, 96000, 4000),
        ("week", 1, 1200, 5200),
        ("week", 4, 1200, 1300),
        ("day", 1, 100, 3042),
    ],
)
def test_every_interval_is_brought_to_a_month(interval: str, count: int, amount: int, a_month: int) -> None:
    assert whole(subscription(item(price(amount, interval, count)))) == a_month


def test_quantities_and_several_items_add_up() -> None:
    of = subscription(item(price(1000), 3), item(price(12000, "year"), 2), item(price(500), None))
    assert whole(of) == 3000 + 2000 + 500


def test_amounts_below_a_minor_unit_and_packages() -> None:
    assert monthly(subscription(item(price(None, unit_amount_decimal="0.5"), 101))) == Decimal("50.5")
    up = price(700, transform_quantity={"divide_by": 10, "round": "up"})
    down = price(700, transform_quantity={"divide_by": 10, "round": "down"})
    assert whole(subscription(item(up, 11))) == 1400
    assert whole(subscription(item(down, 19))) == 700


@pytest.mark.parametrize(
    ("given", "a_month"),
    [
        (discount(coupon(percent_off=25)), 3675),
        (discount(coupon(percent_off=33.3)), 3268),
        (discount(coupon(percent_off=100)), 0),
        (discount(coupon(percent_off=25, duration="once")), 4900),
        (discount(coupon(percent_off=25, duration="repeating"), end=NOW + 1), 3675),
        (discount(coupon(percent_off=25, duration="repeating"), end=NOW), 4900),
        (discount(coupon(amount_off=900, currency="usd")), 4000),
        (discount(coupon(amount_off=9900, currency="usd")), 0),
        (discount(coupon(amount_off=900, currency="eur")), 4900),
        (discount(coupon(amount_off=1, currency="eur", currency_options={"usd": {"amount_off": 900}})), 4000),
        (discount(coupon(percent_off=50, applies_to={"products": ["prod_1"]})), 2450),
        (discount(coupon(percent_off=50, applies_to={"products": ["prod_2"]})), 4900),
        ({"id": "di_1", "coupon": coupon(percent_off=50), "end": None}, 2450),  # as older versions tell it
    ],
)
def test_discounts(given: dict[str, Any], a_month: int) -> None:
    assert whole(subscription(item(price(4900)), discounts=[given])) == a_month
    assert whole(subscription(item(price(4900), discounts=[given]))) == a_month


def test_an_amount_off_comes_off_each_invoice_and_not_each_month() -> None:
    yearly = subscription(
        item(price(48000, "year")), discounts=[discount(coupon(amount_off=12000, currency="usd"))]
    )
    assert whole(yearly) == 3000


def test_discounts_of_items_come_first_and_one_follows_the_other() -> None:
    half, tenth = discount(coupon(percent_off=50)), discount(coupon(percent_off=10))
    off = discount(coupon(amount_off=100, currency="usd"))
    of = subscription(item(price(1000), discounts=[half]), item(price(2000)), discounts=[off, tenth])
    assert whole(of) == round((500 + 2000 - 100) * 0.9)


def test_a_coupon_that_is_only_named_is_looked_up() -> None:
    of = subscription(item(price(1000)), discounts=[discount("co_1")])
    assert whole(of, coupons={"co_1": coupon(percent_off=10)}) == 900


TIERS = [
    {"up_to": 10, "unit_amount": 100, "flat_amount": 0},
    {"up_to": 20, "unit_amount": 80, "flat_amount": 50},
    {"up_to": None, "unit_amount": 50, "flat_amount": None},
]


@pytest.mark.parametrize(
    ("mode", "quantity", "a_month"),
    [
        ("graduated", 10, 1000),
        ("graduated", 15, 1000 + 5 * 80 + 50),
        ("graduated", 25, 1000 + 10 * 80 + 50 + 5 * 50),
        ("volume", 10, 1000),
        ("volume", 11, 11 * 80 + 50),
        ("volume", 25, 25 * 50),
    ],
)
def test_tiers(mode: str, quantity: int, a_month: int) -> None:
    tiered = price(None, billing_scheme="tiered", tiers_mode=mode)
    known = {"price_1": {**tiered, "tiers": TIERS}}
    assert whole(subscription(item(tiered, quantity)), prices=known) == a_month


def test_a_price_with_another_main_currency() -> None:
    of = subscription(item(price(4900)), currency="eur")
    options = {"eur": {"unit_amount": 4500, "unit_amount_decimal": "4500"}}
    assert whole(of, prices={"price_1": price(4900, currency_options=options)}) == 4500
    with pytest.raises(Unpriced):
        monthly(of, prices={"price_1": price(4900)})


def test_what_is_known_only_afterwards_is_not_guessed() -> None:
    metered = price(10, recurring={"interval": "month", "interval_count": 1, "usage_type": "metered"})
    with pytest.raises(Unpriced):
        monthly(subscription(item(price(100)), item(metered, None)))
    with pytest.raises(Unpriced):
        monthly(subscription(item(price(None))))


@pytest.mark.parametrize(
    ("of", "paying", "paused"),
    [
        (subscription(status="active"), True, False),
        (subscription(status="past_due"), True, False),
        (subscription(status="trialing"), False, False),
        (subscription(status="unpaid"), False, False),
        (subscription(status="incomplete"), False, False),
        (subscription(status="canceled"), False, False),
        (subscription(status="paused"), False, True),
        (subscription(status="active", pause_collection={"behavior": "void"}), False, True),
    ],
)
def test_who_counts(of: dict[str, Any], paying: bool, paused: bool) -> None:
    assert (recurring.is_paying(of), recurring.is_paused(of)) == (paying, paused)


amounts = st.integers(0, 10**7)


@given(
    st.lists(
        st.tuples(amounts, st.sampled_from(["day", "week", "month", "year"]), st.integers(1, 4)), min_size=1
    ),
    st.lists(st.integers(0, 100), max_size=3),
    st.integers(0, 10**7),
)
def test_a_discount_never_adds_and_never_goes_below_nothing(
    items: list[tuple[int, str, int]], percents: list[int], off: int
) -> None:
    rows = [item(price(amount, interval), quantity) for amount, interval, quantity in items]
    full = monthly(subscription(*rows))
    discounts = [discount(coupon(percent_off=percent)) for percent in percents]
    discounts.append(discount(coupon(amount_off=off, currency="usd")))
    less = monthly(subscription(*rows, discounts=discounts))
    assert Decimal("-1e-9") <= less <= full + Decimal("1e-9")
