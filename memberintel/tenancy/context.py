"""Who the present work is for: an immutable value in a ContextVar, stamped on every transaction by our backend.

Nothing here talks to the database. A thread, a task or a streaming generator starts without a scope and
enters its own; without one the database refuses every tenant table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

SYSTEM_TENANT_ID = UUID(int=1)


class NoScope(RuntimeError):
    """Tenant content was reached for without a scope. Wrap the work in `with scope(Scope(tenant, customer))`."""


class ScopeChange(RuntimeError):
    """A transaction of one scope was open when another was entered or used; end that transaction first."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A tenant and, for private content, the customer inside it."""

    tenant_id: UUID
    customer_id: UUID | None = None


SYSTEM = Scope(SYSTEM_TENANT_ID)

_scope: ContextVar[Scope | None] = ContextVar("memberintel_scope", default=None)


def current_scope() -> Scope:
    """The scope in force, or NoScope."""
    found = _scope.get()
    if found is None:
        raise NoScope("no scope is set for this work")
    return found


def scope_or_none() -> Scope | None:
    """The scope in force, or None."""
    return _scope.get()


def current_tenant_id() -> UUID:
    """Tenant of the scope in force, or NoScope. Used as a field default."""
    return current_scope().tenant_id


def current_customer_id() -> UUID:
    """Customer of the scope in force; NoScope also when the scope has a tenant only. Used as a field default."""
    customer = current_scope().customer_id
    if customer is None:
        raise NoScope("this work has a tenant but no customer in its scope")
    return customer


@contextmanager
def scope(wanted: Scope) -> Iterator[Scope]:
    """Do the work inside for `wanted`. Opens no transaction: each one that begins inside is stamped with it.

    Never yield out of it in a generator: a generator shares the context of whoever reads it, and would hand
    its scope to them. ScopeChange when a transaction of another scope is open.
    """
    _refuse_change_inside_transaction(wanted)
    token = _scope.set(wanted)
    try:
        yield wanted
    finally:
        _scope.reset(token)


@contextmanager
def outside_scopes() -> Iterator[None]:
    """Do the work inside for nobody, whatever scope the caller stands in: tenant tables are refused to it."""
    _refuse_change_inside_transaction(None)
    token = _scope.set(None)
    try:
        yield
    finally:
        _scope.reset(token)


def _refuse_change_inside_transaction(wanted: Scope | None) -> None:
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        scoped = getattr(connection, "tenant_role", None) is not None
        if scoped and connection.in_atomic_block and getattr(connection, "stamped", None) != wanted:
            raise ScopeChange(f"a transaction of another scope is open on {connection.alias!r}")
