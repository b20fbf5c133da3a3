"""What staff must know of sessions, across tenants: whether the clock closes what is over, and how often customers
say that something was forgotten. No content.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count

from memberintel.tenancy.desk import SUPPORT
from sessions.models import ForgotReport, Session

MOST = 100
_SWEEPS_MISSED = timedelta(minutes=30)  # the sweep comes every quarter of an hour


def not_closed(now: datetime) -> int:
    """How many sessions (MOST at most) are over and should have been closed by now."""
    before = now - timedelta(seconds=settings.IDLE_SECONDS) - _SWEEPS_MISSED
    late = Session.objects.using(SUPPORT).filter(closed_at=None, ended_at__lte=before).order_by("ended_at")
    return len(late.values_list("id", flat=True)[:MOST])


def forgotten(since: datetime, until: datetime) -> dict[UUID, int]:
    """How often customers reported that something was forgotten, from `since` until before `until`, by tenant."""
    rows = ForgotReport.objects.using(SUPPORT).filter(at__gte=since, at__lt=until)
    return dict(rows.values_list("tenant_id").annotate(times=Count("id")).order_by("tenant_id"))
