"""What staff may not do alone: one asks, with a reason, and a second person decides. In the scope of whom it is about.

The database holds it too: an approval by whoever asked is refused there, and so is a second open request for the
same.
"""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

from django.db import IntegrityError, transaction

from memberintel.lib import clock
from memberintel.privacy import audit
from memberintel.privacy.models import Erasure, StaffRequest
from memberintel.tenancy import staff as roles
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import User
from memberintel.tenancy.staff import reason_in
from memberintel.vault import keyring

type Decision = Literal["approved", "declined", "withdrawn"]
DECISIONS: Final[tuple[Decision, ...]] = ("approved", "declined", "withdrawn")
_UNDECIDED: Final[dict[Decision, tuple[str, ...]]] = {  # what may have been decided before
    "approved": ("",),
    "declined": ("",),
    "withdrawn": ("", "approved"),
}


class Refused(Exception):
    """It may not be done; the text is for the person who tried."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def ask_erasure(*, staff: User, whose: Scope, reason: str) -> StaffRequest:
    """Ask that a customer, or (without one in `whose`) a tenant, be erased. Raises Refused, NoReason."""
    said = reason_in(reason)
    if not roles.is_staff(staff) or not staff.has_perm("privacy.ask_erasure"):
        raise Refused("Your role does not ask for erasures.")
    try:
        with scope(whose), transaction.atomic():
            row = StaffRequest(customer_id=whose.customer_id, action="erase", reason=said, asked_by=staff.pk)
            with keyring.only(audit.owner_of(whose.tenant_id, whose.customer_id)):
                row.save(force_insert=True)
            _record("erasure_asked", staff, whose, row.pk, said)
    except IntegrityError:
        raise Refused("This has been asked for already and is not done yet.") from None
    return row


def decide(request: UUID, decision: Decision, *, staff: User, whose: Scope, reason: str) -> None:
    """Approve or decline what somebody else asked for; or withdraw what one asked for or approved oneself, as long as
    nobody has begun to carry it out.

    Raises Refused, NoReason.
    """
    said = reason_in(reason)
    with scope(whose), transaction.atomic():
        row = StaffRequest.objects.select_for_update().filter(pk=request, done_at=None).first()
        if row is None or row.decision not in _UNDECIDED[decision]:
            raise Refused("This has been decided already.")
        _require(row, decision, staff)
        row.decision, row.decided_by, row.decided_at = decision, staff.pk, clock.now()
        row.save(update_fields=["decision", "decided_by", "decided_at"])
        _record(f"erasure_{decision}", staff, whose, row.pk, said)


def open_for(whose: Scope) -> StaffRequest | None:
    """The erasure of `whose` that somebody asked for and nobody has decided about yet."""
    with scope(whose):
        return StaffRequest.objects.filter(customer_id=whose.customer_id, decision="").first()


def approved(whose: Scope) -> StaffRequest | None:
    """The erasure of `whose` that two people want and nobody has carried out yet."""
    with scope(whose):
        rows = StaffRequest.objects.filter(customer_id=whose.customer_id, decision="approved", done_at=None)
        return rows.first()


def carried_out(request: StaffRequest) -> None:
    """Keep that it is done; in the scope and transaction of the doing."""
    StaffRequest.objects.filter(pk=request.pk, done_at=None).update(done_at=clock.now())


def _require(row: StaffRequest, decision: Decision, staff: User) -> None:
    own = row.asked_by == staff.pk
    if decision == "withdrawn":
        if staff.pk not in (row.asked_by, row.decided_by):
            raise Refused("Only who asked for it or approved it can withdraw it.")
        if Erasure.objects.filter(request=row.pk).exists():  # who begins one locks the request first
            raise Refused("It is being erased already.")
        return
    if own:
        raise Refused("You asked for it yourself: a second person decides.")
    if not roles.is_staff(staff) or not staff.has_perm("privacy.approve_erasure"):
        raise Refused("Your role does not decide about erasures.")


def _record(action: str, staff: User, whose: Scope, request: UUID, reason: str) -> None:
    audit.record(
        action,
        actor=staff.pk,
        subject=whose.customer_id,
        tenant=whose.tenant_id,
        what=f"request {request}",
        reason=reason,
    )
