"""The report of a month: what models were used for and cost, by purpose, model and tenant, and the alarms.

Made by the worker: a function tells whose calls there are, and each one's are added up in their own scope.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import SYSTEM_TENANT_ID, Scope, scope
from memberintel.tenancy.models import Tenant
from memberintel.usage import charges, spending
from memberintel.usage.models import LedgerEntry, MonthlyReport, TenantMonth
from memberintel.usage.runs import Recorded
from memberintel.usage.spending import Sums
from sessions import oversight as sessions
from wrapups import oversight

SHARE = 0.10  # of a tenant's spend, for wrap-ups
WRAP_UPS = 30  # a customer and month, and held by one customer
MONTHS = 3  # in a row
QUALITY = 0.85  # of the quality cases, in two releases in a row
PRO = "pro"

OWNERS = "SELECT tenant_id, customer_id FROM app.ledger_owners(%s, %s) ORDER BY 1, 2"
HOLDERS = "SELECT tenant_id, customer_id FROM app.wrap_up_holders(%s) ORDER BY 1, 2"


@dataclass
class Tally:
    """What is added up of a month."""

    sums: list[Sums] = field(default_factory=list)
    tenants: dict[UUID, TenantMonth] = field(default_factory=dict)
    wrap_ups: Counter[tuple[UUID, UUID]] = field(default_factory=Counter)
    customers: dict[UUID, set[UUID]] = field(default_factory=lambda: defaultdict(set))
    forgotten: Counter[UUID] = field(default_factory=Counter)


@dataclass(frozen=True)
class Release:
    """The recorded result of the quality cases on a model."""

    date: str
    model: str
    rate: float


def step(run: Recorded) -> None:
    """A step of the daily run: this month so far; and the last one, until it was made after its end."""
    this = charges.this_month()
    last = (this - timedelta(days=1)).replace(day=1)
    if not MonthlyReport.objects.filter(month=last, made_at__gte=_midnight(this)).exists():
        run.count("tenants", make(last).tenants)
    run.count("tenants", make(this).tenants)


def make(month: date) -> MonthlyReport:
    """Add up the month that begins on that day (UTC), and keep the report in place of an earlier one of it."""
    tally = _tally(month)
    for tenant, row in tally.tenants.items():
        with scope(Scope(tenant)), transaction.atomic():
            TenantMonth.objects.update_or_create(month=month, defaults=_figures(row))
    pro = set(Tenant.objects.filter(id__in=tally.tenants, tier_id=PRO).values_list("id", flat=True))
    most_held, holders = _held()
    found = {
        "made_at": clock.now(),
        "tenants": len(tally.tenants.keys() - {SYSTEM_TENANT_ID}),
        "cost_micros": sum(row.cost_micros for row in tally.tenants.values()),
        "pro_customers": sum(len(tally.customers[tenant]) for tenant in pro),
        "pro_wrap_ups": sum(number for (tenant, _), number in tally.wrap_ups.items() if tenant in pro),
        "most_held": most_held,
        "sums": [_told(each) for each in spending.by_purpose_and_model(tally.sums)],
    }
    report, _ = MonthlyReport.objects.update_or_create(month=month, defaults=found)
    report.alarms = [
        *_dear(tally.tenants.values()),
        *_many(month),
        *_holding(holders, most_held),
        *_quality(releases(Path(settings.BASE_DIR) / "evals" / "results")),
        *_forgotten(+tally.forgotten),
    ]
    report.save(update_fields=["alarms"])
    return report


# --- adding up -------------------------------------------------------------------------------------------


def _tally(month: date) -> Tally:
    tally = Tally()
    begin, end = _midnight(month), _midnight(charges.renewal(month))
    for tenant, customer in _ids(OWNERS, uuid7(begin, bytes(10)), uuid7(end, bytes(10))):
        row = tally.tenants.setdefault(tenant, TenantMonth(tenant_id=tenant, month=month))
        with scope(Scope(tenant, customer)), transaction.atomic():
            calls = LedgerEntry.objects.filter(id__gte=uuid7(begin, bytes(10)), id__lt=uuid7(end, bytes(10)))
            found = spending.sums_of(calls, month)
            made = oversight.made(begin, end) if customer else 0
            forgotten = sessions.forgotten(begin, end) if customer else 0
        tally.sums += found
        _add(row, found)
        if customer:
            row.wrap_ups += made
            tally.wrap_ups[tenant, customer] += made
            tally.customers[tenant].add(customer)
            tally.forgotten[tenant] += forgotten
    return tally


def _add(row: TenantMonth, found: Sequence[Sums]) -> None:
    for each in found:
        row.calls += each.calls
        row.unpriced += each.unpriced
        row.cost_micros += each.cost_micros
        row.wrap_up_micros += each.cost_micros if each.purpose == "wrap_up" else 0


def _held() -> tuple[int, int]:
    """How many wrap-ups the customer has who has most of those with too many, and how many such customers there are."""
    most, holders = 0, 0
    for tenant, customer in _ids(HOLDERS, WRAP_UPS):
        with scope(Scope(tenant, customer)):
            most, holders = max(most, oversight.held()), holders + 1
    return most, holders


def _ids(sql: str, *given: Any) -> list[tuple[UUID, UUID | None]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())


def _figures(row: TenantMonth) -> dict[str, int]:
    names = ("calls", "unpriced", "cost_micros", "wrap_up_micros", "wrap_ups")
    return {name: getattr(row, name) for name in names}


def _told(each: Sums) -> dict[str, Any]:
    names = ("purpose", "model", "calls", "failed", "cost_micros", "unpriced")
    return {name: getattr(each, name) for name in names}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# --- alarms: what was decided must be looked at again when one rings --------------------------------------


def _alarm(code: str, says: str) -> dict[str, str]:
    return {"code": code, "says": says}


def _dear(tenants: Any) -> Iterator[dict[str, str]]:
    dear = [row for row in tenants if row.wrap_up_micros > SHARE * row.cost_micros]
    if dear:
        worst = max(dear, key=lambda row: row.wrap_up_micros / row.cost_micros)
        share = worst.wrap_up_micros / worst.cost_micros
        yield _alarm(
            "wrap_up_spend",
            f"Wrap-ups cost more than {SHARE:.0%} of what models cost for {len(dear)} accounts, at most {share:.0%}"
            f" (account {worst.tenant_id}). Raise the threshold for a wrap-up, or select sessions.",
        )


def _many(month: date) -> Iterator[dict[str, str]]:
    rows = list(MonthlyReport.objects.filter(month__lte=month).order_by("-month")[:MONTHS])
    in_a_row = len(rows) == MONTHS and rows[-1].month == _before(month, MONTHS - 1)
    if in_a_row and all(row.pro_wrap_ups > WRAP_UPS * row.pro_customers for row in rows):
        yield _alarm(
            "wrap_ups_per_customer",
            f"More than {WRAP_UPS} wrap-ups for each active Pro customer in {MONTHS} months in a row. The newest few"
            " no longer suffice: find wrap-ups by what they are about.",
        )


def _before(month: date, number: int) -> date:
    for _ in range(number):
        month = (month - timedelta(days=1)).replace(day=1)
    return month


def _holding(holders: int, most: int) -> Iterator[dict[str, str]]:
    if holders:
        yield _alarm(
            "wrap_ups_held",
            f"{holders} customers hold more than {WRAP_UPS} wrap-ups, one of them {most}. The newest few no longer"
            " suffice: find wrap-ups by what they are about.",
        )


def _quality(found: Sequence[Release]) -> Iterator[dict[str, str]]:
    last = found[-2:]
    if len(last) == 2 and all(release.rate < QUALITY for release in last):
        told = " and ".join(f"{release.rate:.0%} ({release.model}, {release.date})" for release in last)
        yield _alarm(
            "quality",
            f"The quality cases are below {QUALITY:.0%} in two releases in a row: {told}. Work on the prompt first,"
            " then take a stronger model.",
        )


def _forgotten(reports: Counter[UUID]) -> Iterator[dict[str, str]]:
    if reports:
        worst, times = reports.most_common(1)[0]
        yield _alarm(
            "forgotten",
            f"Customers said {reports.total()} times that something was forgotten (accounts: {len(reports)}), most"
            f" often in account {worst} ({times}). Look there at what the advisor knew.",
        )


def releases(folder: Path) -> list[Release]:
    """The recorded results of the quality cases on real models, the oldest first. Other files are passed over."""
    found = [release for path in folder.glob("*.json") if (release := _release(path)) is not None]
    return sorted(found, key=lambda release: release.date)


def _release(path: Path) -> Release | None:
    try:
        told = json.loads(path.read_text())
        model, suite = str(told["model"]), str(told["suite"])
        total = int(told["total"])
        rate = int(told["passed"]) / total
        day = str(told["date"])
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError):
        return None
    if "quality" not in suite or model.startswith(("offline", "scripted")):
        return None
    return Release(day, model, rate)
