"""Moments and days as people and programs write them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

FIRST_DAY: Final = date(1900, 1, 1)
LAST_DAY: Final = date(9000, 1, 1)
"""Days that can be asked for: some years before and after these are still dates."""


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


def day(given: str) -> date | None:
    """The day; None unless it is written as YYYY-MM-DD, from FIRST_DAY to LAST_DAY."""
    try:
        found = date.fromisoformat(given)
    except ValueError:
        return None
    return found if FIRST_DAY <= found <= LAST_DAY and found.isoformat() == given else None
