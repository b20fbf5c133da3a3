"""A scope is stamped on each transaction that begins inside it, and on nothing else."""

from __future__ import annotations

import asyncio
import threading
from contextvars import Context
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, ProgrammingError, connection, connections, transaction

from memberintel.tenancy.backend import base
from memberintel.tenancy.context import (
    NoScope,
    Scope,
    ScopeChange,
    current_customer_id,
    current_scope,
    current_tenant_id,
    outside_scopes,
    scope,
    scope_or_none,
)
from sessions.models import Session
from tests.tenancy.conftest import Cast
from tests.tenancy.databases import connected_as

WHO = (
    "SELECT current_user::text, coalesce(current_setting('app.tenant_id', true), ''),"
    " coalesce(current_setting('app.customer_id', true), '')"
)


def ask(sql: str = WHO, alias: str = "default") -> Any:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()


def stamp_of(who: Scope, role: str = "web_tenant") -> tuple[str, str, str]:
    return role, str(who.tenant_id), str(who.customer_id or "")


def test_without_a_scope_there_is_none() -> None:
    assert scope_or_none() is None
    for ask_for in (current_scope, current_tenant_id, current_customer_id):
        with pytest.raises(NoScope):
            ask_for()
    assert ask() == ("web", "", "")


def test_a_scope_of_a_tenant_has_no_customer(cast: Cast) -> None:
    with scope(Scope(cast.alice.scope.tenant_id)):
        with pytest.raises(NoScope, match="no customer"):
            current_customer_id()
        with pytest.raises(ProgrammingError, match="no customer in scope"):
            ask("SELECT count(*) FROM sessions")


def test_a_lone_statement_is_a_transaction_of_its_own(cast: Cast) -> None:
    with scope(cast.alice.scope):
        assert ask() == stamp_of(cast.alice.scope)
        assert connection.get_autocommit()
        assert not connection.in_atomic_block
    assert ask() == ("web", "", "")


def test_each_login_enters_its_own_group(cast: Cast) -> None:
    with connected_as("worker"), scope(cast.alice.scope):
        assert ask() == stamp_of(cast.alice.scope, "worker_tenant")
    for login in ("owner", "support", "backup"):
        with connected_as(login), scope(cast.alice.scope), transaction.atomic():
            assert ask()[0] == login


def test_many_lone_statements_leave_nothing_behind(cast: Cast) -> None:
    for person in (cast.alice, cast.charlie, cast.bob) * 3:
        with scope(person.scope):
            assert ask() == stamp_of(person.scope)
        with pytest.raises(ProgrammingError, match="permission denied"):
            ask("SELECT count(*) FROM sessions")


def test_executemany_and_iterators_are_wrapped_too(cast: Cast) -> None:
    with scope(cast.alice.scope):
        with connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE sessions SET user_messages = user_messages WHERE id = %s", [[cast.alice.user.id]] * 2
            )
        assert len(list(Session.objects.iterator(chunk_size=1))) == Session.objects.count() >= 1


def test_a_scope_lasts_through_savepoints_and_their_rollback(cast: Cast) -> None:
    with scope(cast.alice.scope), transaction.atomic():
        with pytest.raises(ProgrammingError), transaction.atomic():
            ask("SELECT no_such_column FROM sessions")
        assert ask() == stamp_of(cast.alice.scope)
    assert ask() == ("web", "", "")


def test_a_rolled_back_transaction_leaves_nothing_behind(cast: Cast) -> None:
    with pytest.raises(ZeroDivisionError), scope(cast.alice.scope), transaction.atomic():
        raise ZeroDivisionError
    assert ask() == ("web", "", "")


def test_a_failed_statement_leaves_nothing_behind(cast: Cast) -> None:
    with scope(cast.alice.scope), pytest.raises(ProgrammingError):
        ask("SELECT no_such_column FROM sessions")
    assert ask() == ("web", "", "")
    with scope(cast.charlie.scope):
        assert ask() == stamp_of(cast.charlie.scope)


def test_the_outer_scope_is_back_after_an_inner_one(cast: Cast) -> None:
    with scope(cast.alice.scope):
        with scope(cast.charlie.scope):
            assert ask() == stamp_of(cast.charlie.scope)
        assert ask() == stamp_of(cast.alice.scope)
        with pytest.raises(ZeroDivisionError), scope(cast.charlie.scope):
            raise ZeroDivisionError
        assert current_scope() == cast.alice.scope
        with outside_scopes():
            assert ask() == ("web", "", "")
        assert ask() == stamp_of(cast.alice.scope)
    assert scope_or_none() is None


def test_a_transaction_has_one_scope(cast: Cast) -> None:
    with scope(cast.alice.scope), transaction.atomic():
        with scope(cast.alice.scope):
            assert ask() == stamp_of(cast.alice.scope)
        with pytest.raises(ScopeChange), scope(cast.bob.scope):
            pytest.fail("was entered")
        with pytest.raises(ScopeChange), scope(Scope(cast.alice.scope.tenant_id)):
            pytest.fail("was entered")
        with pytest.raises(ScopeChange), outside_scopes():
            pytest.fail("was left")
        assert ask() == stamp_of(cast.alice.scope)
    with transaction.atomic(), pytest.raises(ScopeChange), scope(cast.alice.scope):
        pytest.fail("was entered")


def test_a_statement_never_runs_in_the_transaction_of_another_scope(cast: Cast) -> None:
    """What entering a scope cannot see: a transaction handed to code that runs in a context of its own."""
    with scope(cast.alice.scope), transaction.atomic():
        with pytest.raises(ScopeChange):
            Context().run(ask)
        with pytest.raises(ScopeChange):
            Context().run(lambda: list(Session.objects.all()))
        assert ask() == stamp_of(cast.alice.scope)


def test_the_scope_outlives_neither_its_thread_nor_its_task(cast: Cast) -> None:
    seen: list[Scope | None] = []
    with scope(cast.alice.scope):
        thread = threading.Thread(target=lambda: seen.append(scope_or_none()))
        thread.start()
        thread.join()
    assert seen == [None]

    async def one(who: Scope) -> Scope | None:
        with scope(who):
            await asyncio.sleep(0)
            return scope_or_none()

    async def both() -> list[Scope | None]:
        return list(await asyncio.gather(one(cast.alice.scope), one(cast.charlie.scope)))

    assert asyncio.run(both()) == [cast.alice.scope, cast.charlie.scope]
    assert Context().run(scope_or_none) is None


def test_what_waits_for_the_commit_runs_in_the_scope_of_then(cast: Cast) -> None:
    seen: list[Any] = []
    with scope(cast.alice.scope), transaction.atomic():
        transaction.on_commit(lambda: seen.append(ask()))
        assert seen == []
    assert seen == [stamp_of(cast.alice.scope)]


def test_another_alias_opened_meanwhile_wipes_nothing(cast: Cast) -> None:
    connections["support"].close()
    try:
        with scope(cast.alice.scope), transaction.atomic():
            assert ask() == stamp_of(cast.alice.scope)
            assert ask(alias="support")[0] == "support"
            assert ask() == stamp_of(cast.alice.scope)
        with scope(cast.charlie.scope):
            assert ask() == stamp_of(cast.charlie.scope)
    finally:
        connections["support"].close()


def test_an_alias_without_scopes_may_be_in_a_transaction(cast: Cast) -> None:
    """The support desk reads across tenants in one transaction and acts in a tenant's scope meanwhile."""
    try:
        with transaction.atomic(using="support"):
            assert ask(alias="support")[0] == "support"
            with scope(cast.alice.scope):
                assert ask() == stamp_of(cast.alice.scope)
                assert ask(alias="support")[0] == "support"
    finally:
        connections["support"].close()


def test_a_connection_whose_stamp_failed_is_not_used_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected_as("web"):
        with monkeypatch.context() as broken:
            broken.setattr(
                base, "STAMP", base.STAMP.replace("SELECT", "SELECT pg_terminate_backend(pg_backend_pid()),")
            )
            with scope(cast.alice.scope), pytest.raises(OperationalError):
                ask()
        assert connection.connection is None
        assert not connection.in_atomic_block
        with scope(cast.charlie.scope):
            assert ask() == stamp_of(cast.charlie.scope)
        with monkeypatch.context() as broken:
            broken.setattr(base, "STAMP", base.STAMP.replace("'role'", "'no_such_setting'"))
            with scope(cast.alice.scope), pytest.raises(ProgrammingError):
                ask()
        assert ask() == ("web", "", "")


def test_new_rows_take_their_owner_from_the_scope(cast: Cast) -> None:
    with scope(cast.bob.scope):
        fresh = Session()
    assert (fresh.tenant_id, fresh.customer_id) == fresh.owner_ids
    assert fresh.owner_ids == (cast.bob.scope.tenant_id, cast.bob.scope.customer_id)
    with pytest.raises(NoScope):
        Session()


def test_managers_name_the_scope_so_that_the_planner_sees_it(cast: Cast) -> None:
    with scope(cast.alice.scope):
        text = str(Session.objects.all().query)
    for part in (cast.alice.scope.tenant_id, cast.alice.scope.customer_id):
        assert UUID(str(part)).hex in text.replace("-", "")
