"""The ledger as a table: whose rows who sees, and that nobody changes one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from uuid import UUID

import pytest
from django.db import DatabaseError

from memberintel.lib import clock
from memberintel.tenancy.context import NoScope, Scope, scope
from memberintel.usage.actions import CallRecord, record_call
from memberintel.usage.models import LedgerEntry
from tests.conftest import Person

Login = Callable[[str], AbstractContextManager[None]]


def record() -> CallRecord:
    return CallRecord(
        session=None,
        turn=None,
        purpose="chat",
        provider="offline",
        model="extractive",
        attempt=1,
        input_tokens=10,
        output_tokens=5,
        cached_tokens=0,
        cache_write_tokens=0,
        estimated=False,
        cost_micros=None,
        outcome="complete",
        error_code="",
        error_reason="",
        request_digest="0" * 64,
        request_bytes=100,
        started_at=clock.now(),
        duration_ms=12,
    )


def seen(who: Scope) -> set[UUID]:
    with scope(who):
        return set(LedgerEntry.objects.values_list("id", flat=True))


def test_a_row_belongs_to_the_customer_in_scope(alice: Person, bob: Person, charlie: Person) -> None:
    with scope(alice.scope):
        row = record_call(record())
    assert (row.tenant_id, row.customer_id) == (alice.scope.tenant_id, alice.scope.customer_id)
    assert seen(alice.scope) == {row.id}
    assert seen(bob.scope) == set()
    assert seen(charlie.scope) == set()


def test_a_row_without_a_customer_is_seen_without_a_customer(alice: Person) -> None:
    tenant = Scope(alice.scope.tenant_id)
    with scope(tenant):
        row = record_call(record())
    assert seen(tenant) == {row.id}
    assert seen(alice.scope) == set()


def test_without_a_scope_there_is_no_ledger() -> None:
    with pytest.raises(NoScope):
        record_call(record())
    with pytest.raises(DatabaseError, match="permission denied"):
        LedgerEntry.objects.count()


def test_a_row_for_somebody_else_is_refused(alice: Person, charlie: Person) -> None:
    with scope(alice.scope), pytest.raises(DatabaseError, match="row-level security"):
        LedgerEntry.objects.create(
            tenant_id=charlie.scope.tenant_id,
            customer_id=charlie.scope.customer_id,
            **vars(record()),
        )


@pytest.mark.parametrize("role", ["web", "worker"])
def test_rows_are_added_and_never_changed(alice: Person, login: Login, role: str) -> None:
    with login(role), scope(alice.scope):
        record_call(record())
        with pytest.raises(DatabaseError, match="permission denied"):
            LedgerEntry.objects.update(cost_micros=0)
        with pytest.raises(DatabaseError, match="permission denied"):
            LedgerEntry.objects.all().delete()
    assert len(seen(alice.scope)) == 1


@pytest.mark.parametrize(
    ("outcome", "code"), [("complete", "overloaded"), ("failed", ""), ("invalid", ""), ("lost", "x")]
)
def test_outcome_and_error_go_together(alice: Person, outcome: str, code: str) -> None:
    with scope(alice.scope), pytest.raises(DatabaseError, match="ledger_error_with_failure"):
        record_call(replace(record(), outcome=outcome, error_code=code))
