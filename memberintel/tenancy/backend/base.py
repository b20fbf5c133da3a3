"""PostgreSQL backend that carries the scope: role and ids are set transaction-locally at every outermost BEGIN.

Nothing is ever set for a whole database session, so pooled connections and PgBouncer in transaction mode
cannot hand one tenant's context to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django_rls.backends.postgresql import base

from memberintel.tenancy.context import Scope, ScopeChange, scope_or_none

STAMP = (
    "SELECT set_config('role', %s, true), set_config('app.tenant_id', %s, true),"
    " set_config('app.customer_id', %s, true)"
)


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]
    """Stamps transactions and wraps a lone statement made in a scope in a transaction of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stamped: Scope | None = None
        self.execute_wrappers.append(self._run_in_transaction)

    @property
    def tenant_role(self) -> str | None:
        """The group role this login enters in a scope, or None for logins that have no scope."""
        role: str | None = self.settings_dict.get("TENANT_ROLE")
        return role

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)
        self.stamped = None
        if autocommit:
            return
        try:
            self._stamp()
        except BaseException:
            self.close()  # what the server thinks of this transaction is unknown: nothing more goes through it
            raise

    def _stamp(self) -> None:
        wanted = scope_or_none()
        self.stamped = wanted
        if wanted is None or self.tenant_role is None:
            return
        with self.wrap_database_errors, self.connection.cursor() as cursor:
            cursor.execute(STAMP, (self.tenant_role, str(wanted.tenant_id), str(wanted.customer_id or "")))

    def _run_in_transaction(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if self.tenant_role is None:
            return execute(sql, params, many, context)
        wanted = scope_or_none()
        if self.in_atomic_block and self.stamped != wanted:
            raise ScopeChange(f"a transaction of another scope is open on {self.alias!r}")
        if wanted is not None and self.get_autocommit():
            with transaction.atomic(using=self.alias, savepoint=False):
                return execute(sql, params, many, context)
        return execute(sql, params, many, context)
