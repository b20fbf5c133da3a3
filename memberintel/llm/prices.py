"""What models cost, as dated rows: a call is priced by the row in force on its day.

Dollars for a million tokens are micro-dollars for one token, so cost is tokens times price.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from memberintel.llm.types import Usage


@dataclass(frozen=True)
class Price:
    """Dollars for a million tokens of `model` (as "provider:model") from `since` on."""

    model: str
    since: date
    input: Decimal
    output: Decimal
    cached: Decimal
    cache_write: Decimal


def _row(model: str, since: date, *dollars: str) -> Price:
    return Price(model, since, *(Decimal(amount) for amount in dollars))


# input, output, read from the cache, written to the cache; from the providers' price lists. A new price is a
# new row with its date: the old one still prices the calls made before.
PRICES: tuple[Price, ...] = (
    _row("offline:extractive", date(2020, 1, 1), "0", "0", "0", "0"),
    _row("anthropic:claude-opus-4-6", date(2026, 2, 1), "5", "25", "0.50", "6.25"),
    _row("anthropic:claude-sonnet-4-6", date(2026, 2, 1), "3", "15", "0.30", "3.75"),
    _row("anthropic:claude-haiku-4-5", date(2025, 10, 1), "1", "5", "0.10", "1.25"),
    _row("gemini:gemini-2.5-flash", date(2025, 6, 17), "0.30", "2.50", "0.03", "0.30"),
    _row("gemini:gemini-2.5-flash-lite", date(2025, 7, 22), "0.10", "0.40", "0.01", "0.10"),
)


def cost_micros(provider: str, model: str, usage: Usage, on: date) -> int | None:
    """Cost of a call in micro-dollars, to the nearest; None (not 0) for a model without a price on that day.

    A dated name such as `claude-haiku-4-5-20251001` is priced as the name without its date.
    """
    price = _price(f"{provider}:{model}", on)
    if price is None:
        return None
    cost = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cached_tokens * price.cached
        + usage.cache_write_tokens * price.cache_write
    )
    return int(cost.quantize(Decimal(1), ROUND_HALF_UP))


def _price(name: str, on: date) -> Price | None:
    plain, _, dated = name.rpartition("-")
    names = {name, plain} if len(dated) == 8 and dated.isdigit() else {name}
    rows = [price for price in PRICES if price.model in names and price.since <= on]
    return max(rows, key=lambda price: price.since, default=None)
