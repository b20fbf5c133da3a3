"""What the functions of an erasure may delete: every table of customers and tenants, also one that comes later."""

from __future__ import annotations

from typing import Any, Final

from django.apps import apps
from django.db import connections

from memberintel.privacy import rows
from memberintel.tenancy.models import TenantModel

KEPT: Final = frozenset({"audit", "access_grants", "staff_requests", "ledger", "tenant_months"})
"""Rows that stay: what was done and when, without the texts that died with the key, and sums nobody's name is on."""


def of_customers() -> list[str]:
    """Tables emptied for a customer, those that refer to others first. Of events see `sessions.erasure`."""
    found = [table for table in rows.private_tables() if table not in KEPT | {"session_events"}]
    return found[::-1]


def of_tenants() -> list[str]:
    """Tables emptied for a tenant as a whole, likewise."""
    found = [
        model._meta.db_table
        for model in apps.get_models()
        if issubclass(model, TenantModel)
        and "customer_id" not in {field.attname for field in model._meta.fields}
    ]
    return [table for table in found[::-1] if table not in KEPT]


def let_eraser_in(sender: Any, using: str, **kwargs: Any) -> None:
    """After `migrate`: a policy and the right to delete, on each of these tables. Runs as the owner."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT session_user")
        if cursor.fetchone() != ("owner",):
            return
        wanted = dict.fromkeys((*of_customers(), *of_tenants()), "SELECT, DELETE")
        wanted |= {"ledger": "SELECT, UPDATE (customer_id, session, turn)"}
        for table, privileges in wanted.items():
            cursor.execute("SELECT to_regclass(%s)", [table])
            if cursor.fetchone() == (None,):
                continue
            cursor.execute(f"GRANT {privileges} ON {table} TO eraser")
            cursor.execute(
                "SELECT count(*) FROM pg_policies WHERE schemaname = 'public' AND tablename = %s"
                " AND 'eraser' = ANY(roles)",
                [table],
            )
            if cursor.fetchone() == (0,):
                cursor.execute(f"CREATE POLICY {table}_eraser ON {table} TO eraser USING (true)")
