"""Locks by name, for what no row can be locked for."""

from __future__ import annotations

from django.db import connection


def one_at_a_time(name: str) -> None:
    """Wait for the lock of that name and hold it until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
