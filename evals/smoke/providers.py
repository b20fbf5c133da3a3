"""With the providers' SDKs in between: who answered what, what it cost, and what was read from a cache."""

from __future__ import annotations

import time
from collections import Counter

from evals.loopback.scenario import Call, Scenario
from evals.smoke.play import Told
from evals.smoke.report import Report
from evals.smoke.stage import Customer
from memberintel.llm import prices
from memberintel.llm.types import Usage
from memberintel.tenancy.context import scope
from memberintel.usage.models import LedgerEntry

SETTLE_SECONDS = 10.0
APIS = {"messages": "anthropic", "vertex": "gemini", "key": "gemini"}


def check(report: Report, scenario: Scenario, who: Customer, told: Told) -> None:
    """Every check of this module."""
    rows, calls = _settled(scenario, who)
    _check_served(report, rows, calls)
    _check_costs(report, rows)
    _check_cached(report, [row for row in rows if row.purpose == "chat" and row.session == told.live])


def _settled(scenario: Scenario, who: Customer) -> tuple[list[LedgerEntry], list[Call]]:
    """The ledger's rows and the calls that were received, when both are as many: a title may be on its way."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        with scope(who.scope):
            rows = list(LedgerEntry.objects.order_by("started_at"))
        calls = scenario.calls()
        online = [row for row in rows if row.provider != "offline"]
        if len(online) == len(calls) or time.monotonic() > until:
            return rows, calls
        time.sleep(0.1)


def _check_served(report: Report, rows: list[LedgerEntry], calls: list[Call]) -> None:
    served = {
        purpose: {row.provider for row in rows if row.purpose == purpose} for purpose in ("chat", "wrap_up")
    }
    report.check(
        served == {"chat": {"anthropic"}, "wrap_up": {"gemini"}},
        "Anthropic answers the chat and Gemini writes the wrap-ups",
        "; ".join(f"{purpose}: {', '.join(sorted(names))}" for purpose, names in served.items()),
    )
    report.check(
        {call.api for call in calls} == {"messages", "vertex"}, "Gemini is asked on Vertex AI", len(calls)
    )
    asked = Counter((APIS[call.api], call.model) for call in calls)
    kept = Counter((row.provider, row.model) for row in rows if row.provider != "offline")
    report.check(
        asked == kept and bool(asked),
        "each request that reached a provider has its row in the ledger",
        "; ".join(f"{count} x {model}" for (_, model), count in sorted(kept.items())),
    )
    failed = [row.error_code for row in rows if row.outcome != "complete"]
    report.check(not failed, "none of them failed", ", ".join(failed))


def _check_costs(report: Report, rows: list[LedgerEntry]) -> None:
    wrong = [row.model for row in rows if row.cost_micros != _cost(row)]
    spent = sum(row.cost_micros or 0 for row in rows)
    report.check(
        not wrong and spent > 0,
        "each row has the cost of its tokens, or none where the price is not known",
        wrong or f"{spent / 1_000_000:.4f} dollars",
    )


def _cost(row: LedgerEntry) -> int | None:
    usage = Usage(row.input_tokens, row.output_tokens, row.cached_tokens, row.cache_write_tokens)
    return prices.cost_micros(row.provider, row.model, usage, row.started_at.date())


def _check_cached(report: Report, rows: list[LedgerEntry]) -> None:
    cached = [row.cached_tokens for row in rows]
    report.check(
        len(cached) > 1 and cached[0] == 0 and all(cached[1:]),
        "from the second turn on, what was sent before is read from the cache",
        ", ".join(
            f"{row.cached_tokens} of {row.input_tokens + row.cached_tokens + row.cache_write_tokens}"
            for row in rows
        ),
    )
