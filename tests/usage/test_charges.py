"""Charges: what a tenant may have made in a month is never overdrawn, never counted twice, and given back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, date, datetime
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connections, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from memberintel.lib import clock
from memberintel.tenancy.context import NoScope, Scope, scope
from memberintel.tenancy.models import Tenant, Tier
from memberintel.usage import charges
from memberintel.usage.charges import Budget
from memberintel.usage.models import BudgetReset, Charge, ChargeCounter, Kind, TierBudget
from tests.conftest import Person, make_person
from tests.tenancy.databases import connected_as
from tests.waiting import PATIENCE

Login = Callable[[str], AbstractContextManager[None]]
NOVEMBER, DECEMBER = datetime(2026, 11, 30, 23, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


def tier_with(**limits: int | None) -> str:
    """A tier of its own with these budgets; kinds not named have none."""
    key = f"t{uuid4().hex[:12]}"
    with connected_as("owner"):
        Tier.objects.create(key=key, name=key)
        for kind, limit in limits.items():
            TierBudget.objects.create(tier_id=key, kind=kind, monthly_limit=limit)
    return key


def tenant_with(**limits: int | None) -> Scope:
    """A tenant with these budgets, as a scope without a customer."""
    return Scope(Tenant.objects.create(name="a site", tier_id=tier_with(**limits)).id)


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    before, clock.source = clock.source, lambda: moment
    try:
        yield
    finally:
        clock.source = before


def take(who: Scope, key: UUID, kind: str = Kind.WRAP_UP) -> bool:
    """Take one in a transaction and on a connection of its own."""
    try:
        with scope(who), transaction.atomic():
            return charges.take(kind, key)
    finally:
        if threading.current_thread() is not threading.main_thread():
            connections.close_all()


def left(who: Scope, kind: str = Kind.WRAP_UP) -> Budget:
    with scope(who):
        return charges.left(kind)


def together(who: Scope, keys: list[UUID]) -> list[bool]:
    """What all of them get when they ask at the same moment."""
    ready = threading.Barrier(len(keys))

    def ask(key: UUID) -> bool:
        ready.wait()
        return take(who, key)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(ask, keys))


def test_a_hundred_at_once_on_a_budget_of_ten_give_ten() -> None:
    who = tenant_with(wrap_up_generation=10)
    given = sum(together(who, [uuid4() for _ in range(50)])) + sum(
        together(who, [uuid4() for _ in range(50)])
    )
    assert given == 10
    assert left(who).used == 10
    with scope(who):
        assert Charge.objects.count() == 10


def test_the_same_session_many_times_at_once_is_charged_once() -> None:
    who, key = tenant_with(wrap_up_generation=1), uuid4()
    assert together(who, [key] * 20) == [True] * 20
    assert left(who).used == 1
    assert not take(who, uuid4())
    assert take(who, key)


def test_what_came_to_nothing_is_given_back_once() -> None:
    who, key = tenant_with(wrap_up_generation=1), uuid4()
    assert take(who, key)
    with scope(who):
        assert charges.give_back(Kind.WRAP_UP, key)
        assert not charges.give_back(Kind.WRAP_UP, key)
        assert not charges.give_back(Kind.WRAP_UP, uuid4())
    assert left(who).used == 0
    assert take(who, key)


def test_a_charge_goes_with_the_transaction_that_took_it() -> None:
    who = tenant_with(wrap_up_generation=1)
    with scope(who), transaction.atomic():
        assert charges.take(Kind.WRAP_UP, uuid4())
        transaction.set_rollback(True)
    assert left(who).used == 0


def test_one_that_asks_while_it_is_being_given_back_waits_and_is_charged_anew() -> None:
    who, key = tenant_with(wrap_up_generation=1), uuid4()
    assert take(who, key)
    with ThreadPoolExecutor(1) as pool:
        with scope(who), transaction.atomic():
            charges.give_back(Kind.WRAP_UP, key)
            asking = pool.submit(take, who, key)
            wait_for_a_lock()
        assert asking.result(timeout=PATIENCE)
    assert left(who).used == 1


def wait_for_a_lock() -> None:
    """Until some other connection waits for this transaction."""
    from django.db import connection

    for _ in range(6_000):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody waits")


def test_a_month_ends_at_midnight_utc_and_begins_with_the_whole_budget() -> None:
    who, last = tenant_with(wrap_up_generation=1), uuid4()
    with at(NOVEMBER):
        assert take(who, last)
        assert not take(who, uuid4())
        assert left(who) == Budget(Kind.WRAP_UP, 1, 1, date(2026, 12, 1))
    with at(DECEMBER):
        assert left(who) == Budget(Kind.WRAP_UP, 1, 0, date(2027, 1, 1))
        assert take(who, last)  # tried again after midnight: charged already
        assert take(who, uuid4())
        with scope(who):
            charges.give_back(Kind.WRAP_UP, last)
        assert left(who).used == 1
    with at(NOVEMBER):
        assert left(who).used == 0


def test_another_tier_counts_what_was_used_against_its_own_limit() -> None:
    who = tenant_with(wrap_up_generation=5)
    for _ in range(3):
        assert take(who, uuid4())
    Tenant.objects.filter(id=who.tenant_id).update(tier_id=tier_with(wrap_up_generation=2))
    assert left(who).left == 0
    assert not take(who, uuid4())
    Tenant.objects.filter(id=who.tenant_id).update(tier_id=tier_with(wrap_up_generation=4))
    assert take(who, uuid4())
    assert not take(who, uuid4())


def test_a_budget_left_empty_or_without_a_row_has_no_limit() -> None:
    who = tenant_with(wrap_up_generation=None)
    for kind in (Kind.WRAP_UP, Kind.MOOD):
        assert all(take(who, uuid4(), kind) for _ in range(20))
        budget = left(who, kind)
        assert (budget.limit, budget.used, budget.left) == (None, 20, None)


def test_kinds_have_budgets_of_their_own() -> None:
    who, key = tenant_with(wrap_up_generation=1, journal_generation=1), uuid4()
    assert take(who, key)
    assert take(who, key, Kind.JOURNAL)
    assert not take(who, uuid4(), Kind.JOURNAL)
    with scope(who), pytest.raises(ValueError, match="wrapup"):
        charges.take("wrapup", key)


def test_staff_give_the_month_anew_and_that_is_kept(alice: Person) -> None:
    who, staff, old = tenant_with(wrap_up_generation=2), uuid4(), uuid4()
    with scope(who):
        assert charges.reset(Kind.WRAP_UP, by=staff) is None
    assert take(who, old)
    assert take(who, uuid4())
    with scope(who):
        charges.reset(Kind.WRAP_UP, by=staff)
        kept = BudgetReset.objects.get()
        assert (kept.used, kept.by, kept.kind) == (2, staff, Kind.WRAP_UP)
    assert take(who, uuid4())
    with scope(who):  # of what was used before, nothing comes back to the new budget
        assert charges.give_back(Kind.WRAP_UP, old)
    assert left(who).used == 1
    new = uuid4()
    assert take(who, new)
    with scope(who):
        assert charges.give_back(Kind.WRAP_UP, new)
    assert left(who).used == 1


@settings(max_examples=15, deadline=None)
@given(
    limit=st.integers(0, 4),
    steps=st.lists(
        st.tuples(st.sampled_from(["take", "give back", "reset"]), st.integers(0, 5)), max_size=25
    ),
)
def test_used_is_what_was_taken_since_the_last_reset_and_never_above_the_limit(
    limit: int, steps: list[tuple[str, int]]
) -> None:
    who, keys = tenant_with(wrap_up_generation=limit), [uuid4() for _ in range(6)]
    taken: dict[int, int] = {}
    resets = 0
    for step, number in steps:
        counted = sum(1 for when in taken.values() if when == resets)
        with scope(who):
            if step == "take":
                expected = number in taken or counted < limit
                assert charges.take(Kind.WRAP_UP, keys[number]) is expected
                if expected:
                    taken.setdefault(number, resets)
            elif step == "give back":
                assert charges.give_back(Kind.WRAP_UP, keys[number]) is (taken.pop(number, None) is not None)
            elif charges.reset(Kind.WRAP_UP, by=who.tenant_id) is not None:
                resets += 1
            now_counted = sum(1 for when in taken.values() if when == resets)
            assert charges.left(Kind.WRAP_UP).used == now_counted <= limit


def test_every_tier_has_a_budget_of_every_kind_and_wrap_ups_are_the_first_to_be_capped_on_free() -> None:
    limits = {(row.tier_id, row.kind): row.monthly_limit for row in TierBudget.objects.all()}
    for tier in ("free", "pro", "business"):
        assert {kind for key, kind in limits if key == tier} == set(Kind.values)
    free = {kind: limits["free", kind] for kind in Kind.values}
    assert all(limit is not None for limit in free.values())
    assert min(free, key=lambda kind: free[kind] or 0) == Kind.WRAP_UP


def test_nobody_takes_from_a_stranger_or_without_a_scope(alice: Person, charlie: Person) -> None:
    key = uuid4()
    assert take(alice.scope, key)
    with scope(charlie.scope):
        assert not charges.give_back(Kind.WRAP_UP, key)
        assert ChargeCounter.objects.count() == 0
    assert left(alice.scope).used == 1
    with pytest.raises(DatabaseError, match="permission denied"):
        charges.take(Kind.WRAP_UP, key)
    with pytest.raises(NoScope):
        charges.left(Kind.WRAP_UP)


def test_colleagues_share_a_budget(alice: Person, bob: Person) -> None:
    assert take(alice.scope, uuid4(), Kind.CHAT_TURN)
    assert take(bob.scope, uuid4(), Kind.CHAT_TURN)
    assert left(bob.scope, Kind.CHAT_TURN).used == 2


@pytest.mark.parametrize("role", ["web", "worker"])
def test_budgets_and_past_resets_are_not_for_the_product_to_change(login: Login, role: str) -> None:
    who = make_person(tier="free").scope
    with login(role), scope(who):
        charges.take(Kind.WRAP_UP, uuid4())
        for change in (
            lambda: TierBudget.objects.update(monthly_limit=None),
            lambda: BudgetReset.objects.update(used=0),
            lambda: BudgetReset.objects.all().delete(),
            lambda: ChargeCounter.objects.all().delete(),
            lambda: Charge.objects.update(key=uuid4()),
        ):
            with pytest.raises(DatabaseError, match="permission denied"):
                change()


def test_the_worker_resets_no_budget(login: Login, alice: Person) -> None:
    take(alice.scope, uuid4())
    with login("worker"), scope(alice.scope), pytest.raises(DatabaseError, match="permission denied"):
        charges.reset(Kind.WRAP_UP, by=alice.user.id)
    assert left(alice.scope).used == 1


@pytest.mark.parametrize(
    ("day", "then"),
    [("2026-01-31", "2026-02-01"), ("2026-12-01", "2027-01-01"), ("2028-02-29", "2028-03-01")],
)
def test_a_budget_renews_on_the_first(day: str, then: str) -> None:
    assert charges.renewal(date.fromisoformat(day)) == date.fromisoformat(then)
