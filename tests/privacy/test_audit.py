"""The audit keeps what was done; nobody who serves or dumps may change, remove or read more than theirs of it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import ProgrammingError, connection, transaction

from memberintel.privacy import audit
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import SYSTEM_TENANT_ID, Scope, ScopeChange, scope
from tests.admin.staff import clerk
from tests.conftest import Person, login_as

WORDS = "asked us to look, said Zanzibarquagga"


def looked(person: Person, **more: Any) -> AuditRow:
    staff = clerk("support")
    row = audit.record(
        "opened",
        actor=staff.pk,
        subject=person.user.pk,
        tenant=person.scope.tenant_id,
        what="document 1",
        reason=WORDS,
        **more,
    )
    with scope(person.scope):
        return AuditRow.objects.get(pk=row)


def test_a_row_says_who_what_whom_and_why(alice: Person) -> None:
    row = looked(alice)
    assert (row.action, row.role, row.what, row.customer_id) == (
        "opened",
        "support",
        "document 1",
        alice.user.pk,
    )
    with scope(alice.scope):
        assert row.reason == WORDS


def test_the_reason_is_sealed(alice: Person) -> None:
    row = looked(alice)
    with login_as("support"), connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_jsonb(a)::text, encode(reason, 'escape') FROM audit a WHERE id = %s", [row.pk]
        )
        (text, reason) = cursor.fetchone()
    assert "Zanzibarquagga" not in text + reason


def test_a_customer_sees_their_own_rows_and_those_of_the_tenant(
    alice: Person, bob: Person, charlie: Person
) -> None:
    mine = looked(alice)
    whole = audit.record(
        "tier", actor=clerk("support").pk, subject=None, tenant=alice.scope.tenant_id, reason="they paid"
    )
    with scope(alice.scope):
        assert set(AuditRow.objects.values_list("pk", flat=True)) == {mine.pk, whole}
        assert AuditRow.objects.get(pk=whole).reason == "they paid"
    with scope(bob.scope):
        assert set(AuditRow.objects.values_list("pk", flat=True)) == {whole}
    with scope(charlie.scope):
        assert not AuditRow.objects.exists()


@pytest.mark.parametrize("role", ["web", "worker"])
@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit SET action = 'nothing'", "DELETE FROM audit", "TRUNCATE audit"],
)
def test_no_login_that_serves_changes_or_removes_a_row(alice: Person, role: str, statement: str) -> None:
    looked(alice)
    with (
        login_as(role),
        scope(alice.scope),
        pytest.raises(ProgrammingError, match="permission denied"),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET action = 'nothing'", "DELETE FROM audit", "TRUNCATE audit"]
)
def test_the_owner_of_the_table_is_refused_too(alice: Person, statement: str) -> None:
    looked(alice)
    with (
        login_as("owner"),
        pytest.raises(ProgrammingError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_a_row_falls_with_the_act_it_is_of(alice: Person) -> None:
    actor = clerk("support").pk
    with scope(alice.scope), transaction.atomic():
        audit.record("edited", actor=actor, subject=alice.user.pk, tenant=alice.scope.tenant_id)
        transaction.set_rollback(True)
    with scope(alice.scope):
        assert not AuditRow.objects.exists()


def test_a_row_of_another_scope_is_refused_inside_a_transaction(alice: Person, charlie: Person) -> None:
    with scope(charlie.scope), transaction.atomic(), pytest.raises(ScopeChange):
        audit.record("edited", actor=None, subject=alice.user.pk, tenant=alice.scope.tenant_id)


def test_who_is_nobody_is_recorded_in_the_systems_tenant() -> None:
    row = audit.record_of_nobody("sign_in_failed", what="no such account")
    with scope(Scope(SYSTEM_TENANT_ID)):
        assert AuditRow.objects.get(pk=row).role == "nobody"


def test_the_role_is_that_of_the_actor_towards_the_subject(alice: Person, bob: Person) -> None:
    def role(actor: Any, subject: Any) -> str:
        row = audit.record("x", actor=actor, subject=subject, tenant=alice.scope.tenant_id)
        with scope(Scope(alice.scope.tenant_id, subject)):
            return AuditRow.objects.get(pk=row).role

    mine = alice.user.pk
    assert role(mine, mine) == "customer"
    assert role(bob.user.pk, mine) == "colleague"
    assert role(None, mine) == "system"
    assert role(clerk("").pk, mine) == "staff"
    assert role(uuid4(), mine) == "nobody"
