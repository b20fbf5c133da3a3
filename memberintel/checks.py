"""What must be true before a process serves. Each check ends the start with one plain sentence."""

from __future__ import annotations

from memberintel.tenancy.guard import verify_login
from memberintel.vault.start import verify_keks


def verify_start() -> None:
    """Misconfigured unless the database answers, its login is bound by row-level security, and the keys fit."""
    verify_login()
    verify_keks()
