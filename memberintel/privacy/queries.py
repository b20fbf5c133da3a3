"""What a customer may read of the audit: who looked at what is theirs or changed it, and why. In the current scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q

from memberintel.lib import paging
from memberintel.privacy import openable
from memberintel.privacy.models import COLLEAGUE, CUSTOMER, AuditRow
from memberintel.tenancy import staff
from memberintel.tenancy.context import current_customer_id
from memberintel.vault.errors import CannotOpen

PAGE: Final = 25
_WHO: Final = {
    **dict.fromkeys(staff.ROLES, "Support staff"),
    CUSTOMER: "You",
    COLLEAGUE: "A colleague of yours",
}
_DID: Final = {
    "access_granted": "was let in, to look",
    "access_ended": "finished looking",
    "opened": "opened",
    "edited": "edited",
    "exported": "took a copy of everything of yours",
    "erasure_begun": "began to erase you",
    "retry": "had something made again",
    "changed": "changed",
    "activate": "let you sign in again",
    "deactivate": "closed your account to sign-ins",
    "erasure_asked": "asked for the erasure of your account",
    "erasure_approved": "approved the erasure of your account",
    "erasure_declined": "declined the erasure of your account",
    "erasure_withdrawn": "took back asking for the erasure of your account",
    "signed_in": "signed in",
    "sign_in_failed": "tried to sign in and could not",
    "signed_out": "signed out",
    "password_changed": "changed the password",
    "password_reset": "set a new password by letter",
    "email_changed": "changed the e-mail address",
    "second_factor_added": "added a second factor",
    "second_factor_removed": "removed a second factor",
    "recovery_codes_made": "made new recovery codes",
}
_WHAT: Final = {
    "closingjob": "the notes on a conversation",
    "tenant": "your account",
    "sessionlog": "a wrap-up",
    "document": "a document",
    "copy": "everything of yours, for a copy",
}
_SAID_BY_ACTION: Final = {"activate", "deactivate"}


@dataclass(frozen=True)
class Entry:
    """One line: `who` did `did` to `what`, in words; `reason` is None when none was given or it cannot be opened."""

    id: UUID
    at: datetime
    action: str
    by_staff: bool
    who: str
    did: str
    what: str
    reason: str | None


def seen_by_staff(
    *, before: datetime | None = None, before_id: UUID | None = None, limit: int = PAGE
) -> list[Entry]:
    """What staff did, newest first. HalfACursor when only one half of the cursor is given."""
    return _entries(Q(role__in=list(staff.ROLES)), before, before_id, limit)


def about_sign_in(
    *, before: datetime | None = None, before_id: UUID | None = None, limit: int = PAGE
) -> list[Entry]:
    """The customer's own sign-ins and what concerns the safety of their account, newest first."""
    own = Q(customer_id=current_customer_id()) & ~Q(role__in=list(staff.ROLES))
    return _entries(own, before, before_id, limit)


def _entries(which: Q, before: datetime | None, before_id: UUID | None, limit: int) -> list[Entry]:
    paging.check(before, before_id)
    rows = AuditRow.objects.filter(which).order_by("-id")  # ids begin with their time
    if before_id is not None:
        rows = rows.filter(id__lt=before_id)
    return [_entry(row) for row in rows[:limit]]


def _entry(row: AuditRow) -> Entry:
    kind = row.what.partition(" ")[0]
    known = openable.kinds().get(kind)
    what = known.words if known else _WHAT.get(kind, "")
    try:
        reason = row.reason
    except CannotOpen:
        reason = None
    by_staff = row.role in staff.ROLES
    return Entry(
        id=row.id,
        at=row.at,
        action=row.action,
        by_staff=by_staff,
        who=_who(row),
        did=_DID.get(row.action, row.action.replace("_", " ")),
        what="" if row.action in _SAID_BY_ACTION else what,
        reason=reason,
    )


def _who(row: AuditRow) -> str:
    """The role. Staff are not named: the desk knows who it was, and answers for them."""
    if row.action == "sign_in_failed":
        return "Somebody"
    if row.role == staff.LEAD:
        return "Support staff (lead)"
    return _WHO.get(row.role, "MemberIntel" if row.role == "system" else "Somebody")
