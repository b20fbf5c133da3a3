"""How often and how long owed work is come back to."""

from __future__ import annotations

from datetime import timedelta

TRIES = 5  # claims before a queued job counts as failed
DAILY_TRIES = 5  # further ones by the daily backfill
UNFUNDED_FOR = timedelta(days=7)  # so long after the close a budget that is back still pays for it
