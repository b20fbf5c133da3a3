"""A tenant's task carries its tenant or fails; a system task reaches no tenant's table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from django.db import ProgrammingError, connection

from memberintel.tenancy.context import Scope, ScopeChange, scope, scope_or_none
from memberintel.tenancy.tasks import SystemTask, TenantTask
from sessions.models import Session
from tests.tenancy.conftest import Cast
from tests.tenancy.databases import connected_as
from tests.waiting import PATIENCE


@pytest.fixture
def app() -> Iterator[Celery]:
    """A queue in memory, with the serialiser that the real one uses."""
    made = Celery("trial", broker="memory://", set_as_current=False)
    yield made
    made.close()


@pytest.fixture
def count(app: Celery) -> Any:
    @app.task(base=TenantTask, shared=False)  # type: ignore[untyped-decorator]
    def count(least: int) -> tuple[int, str]:
        """Sessions in scope, and in whose name they were counted."""
        found = Session.objects.count()
        assert found >= least
        return found, str(scope_or_none())

    return count


def arguments(who: Scope) -> dict[str, str]:
    return {"tenant": str(who.tenant_id), "customer": str(who.customer_id)}


def test_it_runs_in_the_scope_of_its_arguments(count: Any, cast: Cast) -> None:
    with connected_as("worker"):
        for person in (cast.alice, cast.charlie):
            assert count.apply((1,), arguments(person.scope)).get()[1] == str(person.scope)
    assert scope_or_none() is None


def test_it_may_have_a_tenant_and_no_customer(app: Celery, cast: Cast) -> None:
    @app.task(base=TenantTask, shared=False)  # type: ignore[untyped-decorator]
    def whose() -> str:
        return str(scope_or_none())

    alone = Scope(cast.alice.scope.tenant_id)
    assert whose.apply(kwargs={"tenant": str(alone.tenant_id)}).get() == str(alone)


def test_the_scope_of_its_caller_does_not_count(count: Any, cast: Cast) -> None:
    with scope(cast.alice.scope):
        assert count.apply((1,), arguments(cast.charlie.scope)).get()[1] == str(cast.charlie.scope)
        with pytest.raises(TypeError, match="tenant"):
            count.apply((1,), throw=True)


def test_it_is_published_with_its_scope(count: Any, app: Celery, cast: Cast) -> None:
    count.delay(1, **arguments(cast.alice.scope))
    with app.connection_for_read() as broker:
        message = broker.SimpleQueue(app.conf.task_default_queue).get(timeout=PATIENCE)
        message.ack()
    _, kwargs, _ = message.payload
    assert kwargs == arguments(cast.alice.scope)


@pytest.mark.parametrize("given", [{}, {"tenant": ""}, {"tenant": None}, {"customer": "x"}])
def test_without_its_tenant_it_is_not_even_published(count: Any, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="tenant"):
        count.delay(1, **given)


def test_a_call_its_body_cannot_take_is_not_published(count: Any, cast: Cast) -> None:
    with pytest.raises(TypeError, match="unexpected"):
        count.delay(1, most=2, **arguments(cast.alice.scope))
    with pytest.raises(TypeError, match="least"):
        count.delay(**arguments(cast.alice.scope))


def test_a_tenant_that_is_no_id_fails(count: Any) -> None:
    with pytest.raises(ValueError, match="UUID"):
        count.apply((1,), {"tenant": "alice"}, throw=True)


@pytest.mark.parametrize("login", ["web", "worker"])
def test_a_system_task_is_refused_tenant_tables(app: Celery, cast: Cast, login: str) -> None:
    @app.task(base=SystemTask, shared=False)  # type: ignore[untyped-decorator]
    def peek() -> int:
        return Session.objects.count()

    with connected_as(login):
        with pytest.raises(ProgrammingError, match="permission denied"):
            peek.apply(throw=True)
        with scope(cast.alice.scope), pytest.raises(ProgrammingError, match="permission denied"):
            peek.apply(throw=True)


def test_neither_kind_runs_inside_a_transaction_of_another_scope(count: Any, cast: Cast) -> None:
    from django.db import transaction

    with (
        pytest.raises(ScopeChange),
        scope(cast.alice.scope),
        transaction.atomic(),
    ):
        count.apply((1,), arguments(cast.charlie.scope), throw=True)


def test_a_task_gives_its_connection_back(count: Any, cast: Cast) -> None:
    with connected_as("worker"):
        count.apply((1,), arguments(cast.alice.scope))
        assert connection.connection is None
