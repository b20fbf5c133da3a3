"""What staff must know of sessions, across tenants: whether the clock closes what is over, and how often customers
say that something was forgotten. No content.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from memberintel.tenancy.desk import SUPPORT
from sessions.models import ForgotReport, Session

MOST = 100
_SWEEPS_MISSED = timedelta(minutes=30)  # the sweep comes every quarter of an hour


def not_closed(now: datetime) -> int:
    """How many sessions (MOST at most) are over and should have been closed by now."""
    before = now - timedelta(seconds=settings.IDLE_SECONDS) - _SWEEPS_MISSED
    late = Session.objects.using(SUPPORT).filter(closed_at=None, ended_at__lte=before).order_by("ended_at")
    return len(late.values_list("id", flat=True)[:MOST])


def forgotten(since: datetime, until: datetime) -> int:
    """How often the customer in scope reported that something was forgotten, from `since` until before `until`."""
    return ForgotReport.objects.filter(at__gte=since, at__lt=until).count()
