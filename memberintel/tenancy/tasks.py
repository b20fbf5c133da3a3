"""Bases of Celery tasks: a tenant's task carries its scope as arguments or fails."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery import Task
from django.db import connections

from memberintel.tenancy.context import Scope, outside_scopes, scope


class TenantTask(Task):  # type: ignore[misc]
    """Runs in the scope named by the arguments `tenant=` and `customer=` (UUID strings); opens no transaction."""

    abstract = True
    typing = False  # Celery compares a call with the body's parameters, and the scope is not among them

    def apply_async(self, args: Any = None, kwargs: Any = None, *rest: Any, **options: Any) -> Any:
        """As Celery's; TypeError already here when the tenant is missing or the body takes other arguments."""
        of_body = {
            name: value for name, value in (kwargs or {}).items() if name not in ("tenant", "customer")
        }
        if not (kwargs or {}).get("tenant"):
            raise TypeError(f"{self.name} needs tenant=: a tenant's task carries its scope")
        self.__header__(*(args or ()), **of_body)
        return super().apply_async(args, kwargs, *rest, **options)

    def __call__(self, *args: Any, tenant: str, customer: str | None = None, **kwargs: Any) -> Any:
        wanted = Scope(UUID(tenant), UUID(customer) if customer else None)
        try:
            with scope(wanted):
                return super().__call__(*args, **kwargs)
        finally:
            connections.close_all()


class SystemTask(Task):  # type: ignore[misc]
    """Runs without a scope, wherever it is called from: the database refuses it every tenant table."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            with outside_scopes():
                return super().__call__(*args, **kwargs)
        finally:
            connections.close_all()
