"""What a login sees, and may write, of each tenant table: nothing without a scope, nothing of anybody else's."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction

from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import TenantModel
from tests.tenancy.conftest import Cast
from tests.tenancy.databases import connected_as
from tests.tenancy.rows import table_of, tenant_models

LOGINS = {"web": "web_tenant", "worker": "worker_tenant"}
every_table = pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model._meta.label)
each_login = pytest.mark.parametrize("role", LOGINS)


def run(sql: str, *params: Any) -> Any:
    """Rows of a query, or the number of rows a change touched; on the bare cursor, past every manager."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else cursor.rowcount


def may(role: str, what: str, model: type[TenantModel]) -> bool:
    """Whether the group role of a login holds a privilege on the whole table."""
    return bool(run("SELECT has_table_privilege(%s, %s, %s)", LOGINS[role], table_of(model), what)[0][0])


@each_login
@every_table
def test_without_a_scope_every_statement_is_refused(role: str, model: type[TenantModel]) -> None:
    table = table_of(model)
    statements = (
        f"SELECT count(*) FROM {table}",
        f"SELECT 1 FROM {table} WHERE tenant_id = '{uuid4()}'",
        f"INSERT INTO {table} DEFAULT VALUES",
        f"UPDATE {table} SET tenant_id = tenant_id",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
    )
    with connected_as(role):
        for statement in statements:
            with pytest.raises(ProgrammingError, match="permission denied"):
                run(statement)


@each_login
@every_table
def test_a_scope_without_ids_is_refused_by_the_policy(
    role: str, model: type[TenantModel], cast: Cast
) -> None:
    with connected_as(role), transaction.atomic():
        run("SELECT set_config('role', %s, true)", LOGINS[role])
        if may(role, "SELECT", model):
            with pytest.raises(ProgrammingError, match="no tenant in scope"):
                run(f"SELECT count(*) FROM {table_of(model)}")
            transaction.set_rollback(True)


@each_login
@every_table
def test_a_scope_sees_its_own_rows_and_no_others(role: str, model: type[TenantModel], cast: Cast) -> None:
    label, table = model._meta.label, table_of(model)
    private = json.loads(cast.rows[label]).get("customer_id") is not None
    with connected_as(role):
        if not may(role, "SELECT", model):
            return
        with scope(cast.charlie.scope):
            assert {row["tenant_id"] for row in seen(table)} == {str(cast.charlie.scope.tenant_id)}
        with scope(cast.alice.scope):
            assert json.loads(cast.rows[label]) in seen(table)
        with scope(cast.bob.scope):
            found = seen(table)
            assert json.loads(cast.colleague[label]) in found
            assert (json.loads(cast.rows[label]) in found) is not private


def seen(table: str) -> list[dict[str, Any]]:
    return [json.loads(row) for (row,) in run(f"SELECT to_jsonb(t)::text FROM {table} t")]


@each_login
@every_table
def test_a_stranger_changes_nothing(role: str, model: type[TenantModel], cast: Cast) -> None:
    table, tenant = table_of(model), cast.alice.scope.tenant_id
    with connected_as(role):
        rights = {what: may(role, what, model) for what in ("UPDATE", "DELETE")}
        changes = (
            ("UPDATE", f"UPDATE {table} SET tenant_id = tenant_id WHERE tenant_id = %s"),
            ("DELETE", f"DELETE FROM {table} WHERE tenant_id = %s"),
        )
        for what, change in changes:
            with scope(cast.charlie.scope):
                if rights[what]:
                    assert run(change, tenant) == 0
                else:
                    with pytest.raises(ProgrammingError, match="permission denied"):
                        run(change, tenant)


@each_login
@every_table
@pytest.mark.parametrize("whose", ["another tenant's", "a colleague's"])
def test_a_row_cannot_be_planted_with_somebody_else(
    role: str, model: type[TenantModel], whose: str, cast: Cast
) -> None:
    row = json.loads(cast.rows[model._meta.label])
    planter = cast.charlie if whose == "another tenant's" else cast.bob
    if whose == "a colleague's" and row.get("customer_id") is None:
        return
    row |= {"id": str(uuid4())}
    with connected_as(role):
        allowed = may(role, "INSERT", model)
        refusal = "row-level security policy" if allowed else "permission denied"
        with pytest.raises(ProgrammingError, match=refusal), scope(planter.scope):
            run(
                f"INSERT INTO {table_of(model)} SELECT * FROM jsonb_populate_record(NULL::{table_of(model)}, %s)",
                json.dumps(row),
            )


@each_login
@every_table
def test_a_row_cannot_be_given_away(role: str, model: type[TenantModel], cast: Cast) -> None:
    with connected_as(role):
        if not may(role, "UPDATE", model):
            return
        for column, stranger in (
            ("tenant_id", cast.charlie.scope.tenant_id),
            ("customer_id", cast.bob.user.id),
        ):
            if column not in {field.column for field in model._meta.concrete_fields}:
                continue
            with (
                pytest.raises(ProgrammingError, match=r"row-level security policy|permission denied"),
                scope(cast.alice.scope),
            ):
                run(f"UPDATE {table_of(model)} SET {column} = %s", stranger)


def test_a_foreign_key_does_not_tell_that_a_strangers_row_exists(cast: Cast) -> None:
    """The check of a foreign key sees every row: only its tenant keeps it from answering for all of them."""
    session = json.loads(cast.rows["chat.Session"])["id"]
    answers = []
    for target in (session, str(uuid4())):
        with pytest.raises(IntegrityError) as refused, scope(cast.charlie.scope):
            run("UPDATE sessions SET continues = %s", target)
        answers.append(str(refused.value).replace(target, "…"))
    assert answers[0] == answers[1]


def test_events_cannot_be_added_to_a_strangers_session(cast: Cast) -> None:
    event = json.loads(cast.stranger["chat.SessionEvent"])
    answers = []
    for target in (json.loads(cast.rows["chat.Session"])["id"], str(uuid4())):
        with pytest.raises(IntegrityError) as refused, scope(cast.charlie.scope):
            run(
                "INSERT INTO session_events SELECT * FROM jsonb_populate_record(NULL::session_events, %s)",
                json.dumps(event | {"session_id": target, "id": str(uuid4()), "seq": 7}),
            )
        answers.append(str(refused.value).replace(target, "…"))
    assert answers[0] == answers[1]


def test_a_row_belongs_to_a_user_of_its_own_tenant(cast: Cast) -> None:
    """Neither policy can refuse a pair that is in scope: the composite key to users does."""
    wrong = Scope(cast.charlie.scope.tenant_id, cast.alice.user.id)
    session = json.loads(cast.stranger["chat.Session"]) | {
        "id": str(uuid4()),
        "customer_id": str(wrong.customer_id),
    }
    with pytest.raises(IntegrityError, match="users"), scope(wrong):
        run(
            "INSERT INTO sessions SELECT * FROM jsonb_populate_record(NULL::sessions, %s)",
            json.dumps(session),
        )


@pytest.mark.parametrize("role", ["support", "backup"])
def test_staff_and_dumps_read_across_tenants_and_write_nothing(role: str, cast: Cast) -> None:
    with connected_as(role):
        tenants = {row["tenant_id"] for row in seen("sessions")}
        assert {str(cast.alice.scope.tenant_id), str(cast.charlie.scope.tenant_id)} <= tenants
        for change in ("UPDATE sessions SET user_messages = 0", "DELETE FROM sessions"):
            with pytest.raises(ProgrammingError, match="permission denied"):
                run(change)
        with pytest.raises(ProgrammingError, match="permission denied"):
            run("SELECT wrapped FROM vault.data_keys")


@each_login
def test_a_runtime_login_becomes_nobody_else(role: str) -> None:
    others = {"owner", "support", "backup", "searcher", "sweeper", "eraser", "postgres", *LOGINS.values()}
    with connected_as(role):
        for other in sorted(others - {LOGINS[role]}):
            with pytest.raises(ProgrammingError, match="permission denied to set role"):
                run(f"SET LOCAL ROLE {other}")
