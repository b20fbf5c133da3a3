"""What must be true before a process serves. Each check ends the start with one plain sentence."""

from __future__ import annotations

from memberintel.tenancy.guard import verify_login


def verify_start() -> None:
    """Misconfigured unless the database answers and its login is bound by row-level security."""
    verify_login()
