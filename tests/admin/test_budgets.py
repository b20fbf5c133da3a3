"""Staff change the budgets of a tier, and give an account its month anew."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib.admin.models import LogEntry
from django.test import Client

from memberintel.tenancy.context import scope
from memberintel.usage import charges
from memberintel.usage.models import BudgetReset, ChargeCounter, Kind, TierBudget
from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person, make_person
from tests.usage.test_charges import tier_with

COUNTERS = "/admin/usage/chargecounter/"


def used(who: Person, number: int) -> ChargeCounter:
    with scope(who.scope):
        assert all(charges.take(Kind.WRAP_UP, uuid4()) for _ in range(number))
        return ChargeCounter.objects.get(kind=Kind.WRAP_UP)


def give_anew(desk: Client, row: ChargeCounter) -> Any:
    posted = {"action": "give_anew", "_selected_action": str(row.id), "reason": "They were charged twice"}
    return desk.post(COUNTERS, posted, follow=True)


def test_a_budget_is_given_anew_on_record() -> None:
    who, staff = make_person(tier=tier_with(wrap_up_generation=2)), make_staff()
    row, desk = used(who, 2), sign_in(staff)
    with scope(who.scope):
        assert not charges.take(Kind.WRAP_UP, uuid4())
    assert "1 budget is whole again" in give_anew(desk, row).content.decode()
    with scope(who.scope):
        assert charges.left(Kind.WRAP_UP).left == 2
        kept = BudgetReset.objects.get()
        assert (kept.by, kept.used) == (staff.pk, 2)
    entry = LogEntry.objects.filter(object_id=str(row.id)).latest("id")
    assert "after 2 used" in entry.get_change_message()
    page = desk.get(f"{COUNTERS}{row.id}/change/").content.decode()
    assert f"by {staff.email}, after 2" in page
    assert "Nothing to do" in give_anew(desk, row).content.decode()


def test_those_who_may_only_look_give_nothing_anew() -> None:
    who = make_person(tier="free")
    row = used(who, 1)
    give_anew(sign_in(make_staff(superuser=False)), row)
    with scope(who.scope):
        assert charges.left(Kind.WRAP_UP).used == 1


def test_the_budgets_of_a_tier_are_rows_to_edit() -> None:
    tier = tier_with(chat_turn=5, wrap_up_generation=None)
    first, second = TierBudget.objects.filter(tier_id=tier).order_by("id")
    desk, url = sign_in(make_staff()), f"/admin/tenancy/tier/{tier}/change/"
    page = desk.get(url).content.decode()
    assert "Answers" in page
    form: dict[str, Any] = {
        "name": tier,
        "wrap_ups_injected": 3,
        "memory_cap": 5,
        "reason": "A new price list",
    }
    form |= {"budgets-TOTAL_FORMS": 2, "budgets-INITIAL_FORMS": 2}
    for number, (row, limit) in enumerate(((first, ""), (second, "40"))):
        form |= {f"budgets-{number}-id": row.pk, f"budgets-{number}-tier": tier}
        form |= {f"budgets-{number}-monthly_limit": limit}
    assert desk.post(url, form).status_code == 302
    limits = TierBudget.objects.filter(tier_id=tier).order_by("id").values_list("monthly_limit", flat=True)
    assert list(limits) == [None, 40]
    assert LogEntry.objects.filter(object_id=tier).exists()
    bad = desk.post(url, form | {"budgets-1-monthly_limit": "-1"})
    assert bad.status_code == 200
    assert list(limits.all()) == [None, 40]
