"""Bases of Celery tasks: a tenant's task carries its scope as arguments or fails."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery import Task
from django.db import connections

from memberintel.tenancy.context import Scope, scope


class TenantTask(Task):  # type: ignore[misc]
    """Runs in the scope named by the arguments `tenant=` and `customer=` (UUID strings); opens no transaction."""

    abstract = True
    typing = False  # or Celery refuses the two arguments that `__call__` takes off

    def __call__(self, *args: Any, tenant: str, customer: str | None = None, **kwargs: Any) -> Any:
        wanted = Scope(UUID(tenant), UUID(customer) if customer else None)
        try:
            with scope(wanted):
                return super().__call__(*args, **kwargs)
        finally:
            connections.close_all()


class SystemTask(Task):  # type: ignore[misc]
    """Runs without a scope: the database refuses it every tenant table."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        finally:
            connections.close_all()
