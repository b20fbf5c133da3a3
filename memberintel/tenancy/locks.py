"""Locks by name, for what no row can be locked for."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections


def one_at_a_time(name: str, *, using: str = DEFAULT_DB_ALIAS) -> None:
    """Wait for the lock of that name and hold it until the transaction ends."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
