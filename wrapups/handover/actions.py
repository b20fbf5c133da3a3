"""What is owed to the external memory, and an owner's word on it. Short transactions, in the scope."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from memberintel.accounts.queries import person
from memberintel.lib import clock
from memberintel.tenancy.context import Scope, current_customer_id, current_tenant_id, scope
from memberintel.tenancy.models import User
from wrapups.domain.journal import local_day
from wrapups.models import ExternalDeletion, HandOver, HandOverConsent, JournalEntry, SessionLog

State = HandOver.State


def available() -> bool:
    """Whether this installation has an external memory at all."""
    return bool(settings.SUPERMEMORY_API_KEY)


def agreed() -> bool:
    """Whether an owner of the tenant has agreed."""
    return available() and HandOverConsent.objects.exists()


def agree(*, by: UUID) -> None:
    """An owner agrees: what closes from now on is handed over."""
    HandOverConsent.objects.bulk_create([HandOverConsent(by=by)], ignore_conflicts=True)


def withdraw() -> None:
    """An owner takes it back: nothing more is handed over, and all that was is deleted there, of every colleague."""
    tenant = current_tenant_id()
    with transaction.atomic():
        HandOverConsent.objects.all().delete()
    for customer in User.objects.filter(tenant_id=tenant).values_list("id", flat=True):
        with scope(Scope(tenant, customer)):
            forget_customer()


def session_closed(session: UUID, started_at: datetime) -> None:
    """A session worth notes has closed: it and its day are to be handed over, where an owner has agreed."""
    if agreed():
        _owe(f"session_{session}", session=session)
        _owe_day(local_day(started_at, person().zone))


_DOCUMENT: Final = (
    "SELECT document FROM hand_overs WHERE tenant_id = %s AND customer_id = %s AND session_id = %s"
)


def session_changed(session: UUID) -> None:
    """What is kept of a session was changed or deleted: what stands there is to follow, and its day too."""
    with connection.cursor() as cursor:
        cursor.execute(_DOCUMENT, [current_tenant_id(), current_customer_id(), session])
        row = cursor.fetchone()
    if row is None:
        return
    _owe(row[0], session=session)
    if (at := _started(session)) is not None:
        _owe_day(local_day(at, person().zone))


def forget_session(session: UUID) -> int:
    """A session is being erased: so is what stands of it there. Its day is told anew without it."""
    row = HandOver.objects.filter(session_id=session).first()
    if row is None:
        return 0
    if (at := _started(session)) is not None:
        _owe_day(local_day(at, person().zone))
    ExternalDeletion.objects.create(namespace=namespace(current_customer_id()), document=row.document)
    row.delete()
    return 1


def forget_customer() -> int:
    """Everything of the customer's is deleted there, and nothing is owed any more."""
    count, _ = HandOver.objects.all().delete()
    if count:
        ExternalDeletion.objects.create(namespace=namespace(current_customer_id()))
    return count


def namespace(customer: UUID) -> str:
    """What the customer's documents stand under there: an id that tells nothing."""
    return f"memberintel_{customer.hex}"


def _started(session: UUID) -> datetime | None:
    for model in (JournalEntry, SessionLog):
        found = model.objects.filter(session_id=session).values_list("session_started_at", flat=True).first()
        if found is not None:
            return found
    return None


def _owe_day(day: date) -> None:
    _owe(f"journal_{day.isoformat()}", day=day)


def _owe(document: str, *, session: UUID | None = None, day: date | None = None) -> None:
    HandOver.objects.bulk_create(
        [HandOver(document=document, session_id=session, day=day)], ignore_conflicts=True
    )
    HandOver.objects.filter(document=document).update(
        state=State.PENDING, changed=F("changed") + 1, tries=0, next_try_at=clock.now(), last_error=""
    )
