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
    """Dollars for a million tokens of `model` (as "provider:model") from `since` on.

    `above`: only for requests with more input tokens than that, those in the cache included.
    """

    model: str
    since: date
    input: Decimal
    output: Decimal
    cached: Decimal
    cache_write: Decimal
    above: int = 0


def _row(model: str, since: date, *dollars: str, above: int = 0) -> Price:
    given, out, cached, write = (Decimal(amount) for amount in dollars)
    return Price(model, since, given, out, cached, write, above)


# input, output, read from the cache, written to the cache (for 5 minutes); from the providers' price lists, as
# read in November 2026. A new price is a new row with its date: the old one still prices the calls before.
PRICES: tuple[Price, ...] = (
    _row("offline:extractive", date(2020, 1, 1), "0", "0", "0", "0"),
    _row("offline:words-and-stems-1", date(2020, 1, 1), "0", "0", "0", "0"),
    _row("anthropic:claude-fable-5-1", date(2026, 9, 1), "10", "50", "0.25", "12.50"),
    _row("anthropic:claude-fable-5", date(2026, 6, 9), "10", "50", "1", "12.50"),
    _row("anthropic:claude-opus-5-5", date(2026, 9, 22), "4", "20", "0.20", "5"),
    _row("anthropic:claude-opus-5", date(2026, 7, 24), "5", "25", "0.50", "6.25"),
    _row("anthropic:claude-opus-4-8", date(2026, 6, 1), "5", "25", "0.50", "6.25"),
    _row("anthropic:claude-opus-4-6", date(2026, 2, 1), "5", "25", "0.50", "6.25"),
    _row("anthropic:claude-sonnet-5-5", date(2026, 9, 28), "2", "10", "0.20", "2.50"),
    _row("anthropic:claude-sonnet-5-5", date(2026, 10, 7), "2", "10", "0.10", "2.50"),
    _row("anthropic:claude-sonnet-4-6", date(2026, 2, 1), "3", "15", "0.30", "3.75"),
    _row("anthropic:claude-haiku-5-5", date(2026, 10, 7), "0.10", "0.50", "0.01", "0.125"),
    _row("anthropic:claude-haiku-5-5", date(2026, 10, 7), "0.50", "2.50", "0.05", "0.625", above=100_000),
    _row("anthropic:claude-haiku-4-5", date(2025, 10, 1), "1", "5", "0.10", "1.25"),
    # Gemini keeps what it has seen by itself: nothing is paid for writing.
    _row("gemini:gemini-2.5-flash", date(2025, 6, 17), "0.30", "2.50", "0.03", "0.30"),
    _row("gemini:gemini-2.5-flash-lite", date(2025, 7, 22), "0.10", "0.40", "0.01", "0.10"),
    _row("gemini:gemini-3.5-flash-lite", date(2026, 7, 21), "0.30", "2.50", "0.03", "0.30"),
    _row("gemini:gemini-3.8-flash", date(2026, 9, 2), "0.75", "3.75", "0.075", "0.75"),
    _row("gemini:gemini-3.8-flash", date(2027, 1, 1), "1.50", "7.50", "0.15", "1.50"),
)


def cost_micros(provider: str, model: str, usage: Usage, on: date) -> int | None:
    """Cost of a call in micro-dollars, to the nearest; None (not 0) for a model without a price on that day.

    A dated name such as `claude-haiku-4-5-20251001` is priced as the name without its date.
    """
    prompt = usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens
    price = _price(f"{provider}:{model}", on, prompt)
    if price is None:
        return None
    cost = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cached_tokens * price.cached
        + usage.cache_write_tokens * price.cache_write
    )
    return int(cost.quantize(Decimal(1), ROUND_HALF_UP))


def _price(name: str, on: date, prompt: int) -> Price | None:
    plain, _, dated = name.rpartition("-")
    names = {name, plain} if len(dated) == 8 and dated.isdigit() else {name}
    rows = [price for price in PRICES if price.model in names and price.since <= on]
    newest = max((price.since for price in rows), default=None)
    fitting = [price for price in rows if price.since == newest and (price.above < prompt or not price.above)]
    return max(fitting, key=lambda price: price.above, default=None)
