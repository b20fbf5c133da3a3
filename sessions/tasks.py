"""What the clock asks of sessions."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from memberintel.lib import clock
from memberintel.tenancy.tasks import SystemTask, TenantTask
from sessions import closing
from sessions.models import CloseReason

BATCH = 500


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def sweep(idle: bool = True) -> int:
    """Hand every due session to a task of its own; how many."""
    due = closing.due(now=clock.now(), idle=idle, limit=BATCH)
    for session, tenant, customer, reason in due:
        close.delay(str(session), reason.value, tenant=str(tenant), customer=str(customer))
    return len(due)


@shared_task(base=TenantTask)  # type: ignore[untyped-decorator]
def close(session: str, reason: str) -> bool:
    """Close one session, if the reason still holds."""
    return closing.close(UUID(session), reason=CloseReason(reason), by="clock", now=clock.now())
