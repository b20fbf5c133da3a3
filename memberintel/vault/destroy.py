"""Destroying keys, inside the scope of their owner. What they sealed is unreadable from then on, here and in
older backups once the key backups have expired; other processes forget the key within a minute."""

from __future__ import annotations

from functools import partial

from django.db import connection, transaction

from memberintel.tenancy.context import current_tenant_id
from memberintel.vault.keyring import cache, customer_owner


def destroy_customer_key() -> bool:
    """Destroy the key of the scope's customer for good; False when there was no living one."""
    owner = customer_owner()
    destroyed = _call("destroy_customer_key") == 1
    # Again after commit: until then another thread could read the key back into the cache.
    cache.drop(owner)
    transaction.on_commit(partial(cache.drop, owner))
    return destroyed


def destroy_tenant_keys() -> int:
    """Destroy the keys of the scope's tenant and of all its customers for good; how many living ones."""
    tenant = current_tenant_id()
    destroyed = _call("destroy_tenant_keys")
    cache.drop_tenant(tenant)
    transaction.on_commit(partial(cache.drop_tenant, tenant))
    return destroyed


def _call(function: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT app.{function}()")
        (count,) = cursor.fetchone()
    return int(count)
