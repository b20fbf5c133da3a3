from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from pytest_django.fixtures import Settings

from memberintel.llm import prices
from memberintel.llm.types import Usage

DAY = date(2026, 6, 1)


def test_an_unknown_model_costs_nothing_known_rather_than_zero() -> None:
    assert prices.cost_micros("anthropic", "claude-of-tomorrow", Usage(1000, 1000), DAY) is None


def test_offline_is_free() -> None:
    assert prices.cost_micros("offline", "extractive", Usage(1000, 1000), DAY) == 0


def test_each_kind_of_token_has_its_price() -> None:
    usage = Usage(
        input_tokens=1_000_000, output_tokens=100_000, cached_tokens=2_000_000, cache_write_tokens=10
    )
    assert (
        prices.cost_micros("anthropic", "claude-haiku-4-5", usage, DAY) == 1_000_000 + 500_000 + 200_000 + 13
    )


def test_a_dated_name_is_priced_as_the_plain_one() -> None:
    usage = Usage(output_tokens=10)
    assert prices.cost_micros("anthropic", "claude-haiku-4-5-20251001", usage, DAY) == 50


def test_the_row_in_force_on_the_day_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(day: date, dollars: int) -> prices.Price:
        amount = Decimal(dollars)
        return prices.Price("x:m", day, amount, amount, amount, amount)

    monkeypatch.setattr(prices, "PRICES", (row(date(2026, 1, 1), 5), row(date(2026, 3, 1), 2)))
    found = [
        prices.cost_micros("x", "m", Usage(1), date(year, month, 1))
        for year, month in [(2025, 12), (2026, 2), (2026, 3)]
    ]
    assert found == [None, 5, 2]


def test_no_model_has_two_prices_on_one_day() -> None:
    keys = [(price.model, price.since, price.above) for price in prices.PRICES]
    assert len(keys) == len(set(keys))


def test_a_long_prompt_has_its_own_price_whatever_part_of_it_was_cached() -> None:
    day = date(2026, 11, 1)
    short = prices.cost_micros("anthropic", "claude-haiku-5-5", Usage(100_000, 1000), day)
    long = prices.cost_micros("anthropic", "claude-haiku-5-5", Usage(1, 1000, cached_tokens=100_000), day)
    assert (short, long) == (10_000 + 500, 1 + 2_500 + 5_000)


def test_every_default_route_has_a_price_today_and_a_window(settings: Settings) -> None:
    named = {route for purpose in settings.PURPOSES for route in settings.LLM_ROUTES[purpose]}
    for route in named:
        provider, _, model = route.partition(":")
        assert prices.cost_micros(provider, model, Usage(1_000_000), date(2026, 12, 1)) is not None, route
        assert route in settings.LLM_WINDOWS
