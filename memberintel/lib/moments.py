"""Moments as people and programs write them."""

from __future__ import annotations

from datetime import UTC, datetime


def read(given: str) -> datetime | None:
    """The moment in UTC; None unless it is an ISO date and time with its time zone.

    None too for offsets and years that Python knows and the database or another time zone does not.
    """
    try:
        moment = datetime.fromisoformat(given)
        if moment.tzinfo is None:
            return None
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if 1 < moment.year < 9999 else None
