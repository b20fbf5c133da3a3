"""What is counted of a site, day by day, and how amounts are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, Self, get_args

SourceKind = Literal["stripe", "memberpress", "csv"]
SOURCE_KINDS: Final[tuple[SourceKind, ...]] = get_args(SourceKind)
SOURCE_NAMES: Final[dict[SourceKind, str]] = {
    "stripe": "Stripe",
    "memberpress": "MemberPress",
    "csv": "an uploaded file",
}

# Counts of a day. Stocks stand at its end, flows happened in it.
STOCKS: Final = ("active_members", "trials", "paused", "unpriced")
FLOWS: Final = ("new", "churned", "failed_payments", "trials_ended", "trials_converted")
COUNTS: Final = (*STOCKS, *FLOWS)
LABELS: Final[dict[str, str]] = {
    "active_members": "Active members",
    "mrr": "MRR",
    "new": "New members",
    "churned": "Churned members",
    "failed_payments": "Failed payments",
    "trials": "Running trials",
    "trials_ended": "Trials that ended",
    "trials_converted": "Trials that became paying",
    "paused": "Paused subscriptions",
    "unpriced": "Subscriptions left out of MRR",
}
METRICS: Final = tuple(LABELS)
BIGGEST: Final = 10**12  # of any count or amount in minor units; more is a mistake

# Stripe keeps amounts of ISK and UGX in hundredths for old times' sake, so they are not among these.
_WITHOUT_MINOR: Final = frozenset(
    "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split()  # noqa: SIM905 (reads as a list)
)
_THOUSANDTHS: Final = frozenset("BHD IQD JOD KWD LYD OMR TND".split())  # noqa: SIM905


@dataclass(frozen=True)
class Numbers:
    """The numbers of one day. What is not in `counts` is not known; `mrr` is minor units by currency."""

    counts: Mapping[str, int] = field(default_factory=dict)
    mrr: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """From what `stored` gave."""
        counts = {name: int(stored[name]) for name in COUNTS if name in stored}
        return cls(counts, {str(code): int(amount) for code, amount in stored.get("mrr", {}).items()})

    def stored(self) -> dict[str, Any]:
        """As JSON holds it, in a fixed order."""
        told: dict[str, Any] = {name: self.counts[name] for name in COUNTS if name in self.counts}
        if self.mrr:
            told["mrr"] = {code: self.mrr[code] for code in sorted(self.mrr)}
        return told

    def over(self, older: Numbers) -> Numbers:
        """These numbers, with those of `older` where these say nothing."""
        return Numbers({**older.counts, **self.counts}, {**older.mrr, **self.mrr})


@dataclass(frozen=True)
class Day:
    """A day and its numbers."""

    day: date
    numbers: Numbers


def digits(currency: str) -> int:
    """How many decimals amounts of that currency have."""
    if currency in _WITHOUT_MINOR:
        return 0
    return 3 if currency in _THOUSANDTHS else 2


def in_major(amount: int, currency: str) -> Decimal:
    """An amount in minor units as one in the currency itself, with its decimals."""
    return Decimal(amount).scaleb(-digits(currency))


def money(amount: int, currency: str) -> str:
    """An amount in minor units as people read it: `6,958.00 USD`."""
    return f"{in_major(amount, currency):,.{digits(currency)}f} {currency}"


def currencies(days: Iterable[Day]) -> list[str]:
    """The currencies of the newest day that has an amount, the largest there first, then the others by name.

    Amounts of two currencies cannot be compared, so "largest" is only where to begin: the one with most minor
    units, which keeps its place from day to day.
    """
    found: dict[str, int] = {}
    for each in sorted(days, key=lambda day: day.day):
        if each.numbers.mrr:
            found = dict(each.numbers.mrr)
    return sorted(found, key=lambda code: (-in_major(found[code], code), code))
