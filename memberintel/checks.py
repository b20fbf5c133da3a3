"""What must be true before a process serves. Each check ends the start with one plain sentence."""

from __future__ import annotations

from django.db import connections

from memberintel.tenancy.guard import verify_login
from memberintel.vault.start import verify_keks


def verify_start() -> None:
    """Misconfigured unless the database answers, its logins are bound by row-level security, and the keys fit."""
    for alias in connections:  # the support desk's login too
        verify_login(alias)
    verify_keks()
