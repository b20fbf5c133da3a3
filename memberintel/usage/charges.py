"""What a tenant may have made in a month, and taking from it. In the scope and the transaction of the caller.

A unit is taken by one function of the database, under the lock of the month's counter: however many ask at
once, no more are given than the tier's budget has.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from django.db import connection, transaction

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import current_tenant_id
from memberintel.usage.models import BudgetReset, Charge, ChargeCounter, Kind, TierBudget


@dataclass(frozen=True, slots=True)
class Budget:
    """A month's budget of one kind: `limit` None is no limit; at `renews`, 0:00 UTC, the next one begins."""

    kind: Kind
    limit: int | None
    used: int
    renews: date

    @property
    def left(self) -> int | None:
        """How many more; None without a limit. Never below 0, also when the tier has come down since."""
        return None if self.limit is None else max(self.limit - self.used, 0)


def take(kind: str, key: UUID) -> bool:
    """Take one unit for what `key` names (a turn, a session); False when the month's budget is used up.

    Once for each kind and key: taken before is taken. Holds the lock of the tenant's counter until the
    transaction ends, so take last. ValueError for a kind there is not.
    """
    now = clock.now()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT app.take_charge(%s, %s, %s, %s, %s)", [uuid7(), Kind(kind).value, key, _month(now), now]
        )
        return bool(cursor.fetchone()[0])


def give_back(kind: str, key: UUID) -> bool:
    """Give the unit back, since nothing came of it; False when none was taken for that key."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app.give_back_charge(%s, %s)", [Kind(kind).value, key])
        return bool(cursor.fetchone()[0])


def left(kind: str) -> Budget:
    """This month's budget of a kind."""
    return next(budget for budget in budgets() if budget.kind == Kind(kind))


def budgets() -> list[Budget]:
    """This month's budget of every kind, in their order."""
    month = this_month()
    limits = dict(
        TierBudget.objects.filter(tier__tenant=current_tenant_id()).values_list("kind", "monthly_limit")
    )
    used = dict(ChargeCounter.objects.filter(month=month).values_list("kind", "used"))
    return [Budget(kind, limits.get(kind), used.get(kind, 0), renewal(month)) for kind in Kind]


def reset(kind: str, *, by: UUID) -> BudgetReset | None:
    """Give the tenant its whole budget of this month anew, and keep who did so; None when nothing was used."""
    with transaction.atomic():
        month = this_month()
        counter = ChargeCounter.objects.select_for_update().filter(kind=Kind(kind), month=month).first()
        if counter is None or not counter.used:
            return None
        row = BudgetReset.objects.create(kind=counter.kind, month=month, used=counter.used, by=by)
        counter.used, counter.resets = 0, counter.resets + 1
        counter.save(update_fields=["used", "resets"])
        return row


def this_month() -> date:
    """The first day of the month (UTC)."""
    return _month(clock.now())


def renewal(day: date) -> date:
    """The first day of the month after that of `day`."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _month(moment: datetime) -> date:
    return moment.astimezone(UTC).date().replace(day=1)


def forget(keys: Collection[UUID]) -> int:
    """Delete the units taken for these turns or sessions, whose customer was erased; what the month used stays."""
    return Charge.objects.filter(key__in=keys).delete()[0]
