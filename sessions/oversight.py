"""What staff must know of sessions, across tenants: whether the clock closes what is over. No content."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from memberintel.tenancy.desk import SUPPORT
from sessions.models import Session

MOST = 100
_SWEEPS_MISSED = timedelta(minutes=30)  # the sweep comes every quarter of an hour


def not_closed(now: datetime) -> int:
    """How many sessions (MOST at most) are over and should have been closed by now."""
    before = now - timedelta(seconds=settings.IDLE_SECONDS) - _SWEEPS_MISSED
    late = Session.objects.using(SUPPORT).filter(closed_at=None, ended_at__lte=before).order_by("ended_at")
    return len(late.values_list("id", flat=True)[:MOST])
