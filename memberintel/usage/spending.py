"""What models were used for and what that cost, across tenants, by day: for staff. Read over `support`.

The ledger is only ever added to, and a row's id begins with the moment it was added: so a day that is over
never changes, and its sums are worked out once and kept for a while.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import Count, DateTimeField, F, Func, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, TruncDate

from memberintel.lib import clock
from memberintel.tenancy.desk import SUPPORT, since
from memberintel.usage.models import LedgerEntry

_KEPT_SECONDS = 24 * 60 * 60
_STILL_COMING = timedelta(minutes=5)  # a row may be committed a little after its id was made


@dataclass(frozen=True)
class Sums:
    """The calls of one purpose and model on one day. Tokens; micro-dollars of the calls whose price is known."""

    day: date
    purpose: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_micros: int
    unpriced: int

    def plus(self, other: Sums) -> Sums:
        """Both together, under this one's day, purpose and model."""
        return replace(
            self,
            calls=self.calls + other.calls,
            failed=self.failed + other.failed,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_micros=self.cost_micros + other.cost_micros,
            unpriced=self.unpriced + other.unpriced,
        )


def by_day(first: date, last: date) -> list[Sums]:
    """The sums of the days from `first` to `last`, both included (UTC)."""
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    kept: dict[str, list[Sums]] = cache.get_many(map(_key, days))
    missing = [day for day in days if _key(day) not in kept]
    fresh = _read(missing[0], missing[-1]) if missing else {}
    over = (clock.now() - _STILL_COMING).date()
    cache.set_many({_key(day): fresh.get(day, []) for day in missing if day < over}, _KEPT_SECONDS)
    found = [kept[_key(day)] if _key(day) in kept else fresh.get(day, []) for day in days]
    return [sums for of_day in found for sums in of_day]


def by_purpose_and_model(sums: Iterable[Sums]) -> list[Sums]:
    """One for each purpose and model, the dearest first."""
    found: dict[tuple[str, str], Sums] = {}
    for each in sums:
        key = (each.purpose, each.model)
        found[key] = found[key].plus(each) if key in found else each
    return sorted(found.values(), key=lambda s: (-s.cost_micros, -s.calls, s.purpose, s.model))


def total(sums: Iterable[Sums]) -> Sums:
    """All together."""
    whole = Sums(date.min, "", "", 0, 0, 0, 0, 0, 0, 0)
    for each in sums:
        whole = whole.plus(each)
    return whole


def dollars(micros: int) -> str:
    """Micro-dollars as a person reads them: cents, and more digits only where cents would say nothing."""
    amount = micros / 1_000_000
    return f"${amount:,.2f}" if micros == 0 or amount >= 0.1 else f"${amount:.4f}"


def _key(day: date) -> str:
    return f"spending:{day.isoformat()}"


def _read(first: date, last: date) -> dict[date, list[Sums]]:
    moment = Func(F("id"), function="uuid_extract_timestamp", output_field=DateTimeField())
    rows = (
        LedgerEntry.objects.using(SUPPORT)
        .filter(id__gte=since(_midnight(first)), id__lt=since(_midnight(last + timedelta(days=1))))
        .annotate(day=TruncDate(moment, tzinfo=UTC))
    )
    found: dict[date, list[Sums]] = defaultdict(list)
    for row in _added_up(rows, "day"):
        found[row["day"]].append(_sums(row, row["day"]))
    return found


def sums_of(calls: QuerySet[LedgerEntry], day: date) -> list[Sums]:
    """The sums of these calls by purpose and model, all under that day."""
    return [_sums(row, day) for row in _added_up(calls)]


def _added_up(calls: QuerySet[LedgerEntry], *by: str) -> Any:
    return (
        calls.values(*by, "purpose", "provider", "model")
        .annotate(
            calls=Count("*"),
            failed=Count("id", filter=Q(outcome__in=["failed", "invalid"])),
            inputs=Sum("input_tokens"),
            outputs=Sum("output_tokens"),
            cached=Sum("cached_tokens"),
            cost=Coalesce(Sum("cost_micros"), 0),
            unpriced=Count("id", filter=Q(cost_micros=None)),
        )
        .order_by()
    )


def _sums(row: dict[str, Any], day: date) -> Sums:
    return Sums(
        day=day,
        purpose=row["purpose"],
        model=f"{row['provider']}:{row['model']}",
        calls=row["calls"],
        failed=row["failed"],
        input_tokens=row["inputs"],
        output_tokens=row["outputs"],
        cached_tokens=row["cached"],
        cost_micros=int(row["cost"]),
        unpriced=row["unpriced"],
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
