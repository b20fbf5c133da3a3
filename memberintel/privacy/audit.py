"""The audit: one row for each thing staff do, and for what concerns the safety of an account.

Rows are written in the scope they belong to and in the caller's transaction, so that an act and its row stand
or fall together; without a transaction the row is committed by itself. Nothing in them is in the clear but ids,
times and words of ours.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction

from memberintel.lib.text import clean
from memberintel.privacy.models import COLLEAGUE, CUSTOMER, NOBODY, SYSTEM, AuditRow
from memberintel.tenancy import staff
from memberintel.tenancy.context import SYSTEM_TENANT_ID, Scope, scope, scope_or_none
from memberintel.tenancy.models import User

REASON_AT_MOST: Final = 2_000  # characters


def record(
    action: str,
    *,
    actor: UUID | None,
    subject: UUID | None,
    tenant: UUID,
    what: str = "",
    reason: str = "",
    grant: UUID | None = None,
) -> UUID:
    """Keep that `actor` (None: the product itself) did `action` to `subject`, a customer of `tenant`; the row's id.

    `subject` is None for what concerns the tenant as a whole. `what` is a kind and an id ("wrap_up 0193..."),
    never a text of anybody; `reason` is sealed. In another scope than the subject's it raises ScopeChange when a
    transaction is open there.
    """
    here, wanted = scope_or_none(), Scope(tenant, subject)
    if here is not None and here.tenant_id == tenant and subject in {None, here.customer_id}:
        wanted = here
    with scope(wanted), transaction.atomic():
        row = AuditRow(
            customer_id=subject,
            action=action,
            actor=actor,
            role=_role(actor, subject),
            what=what[:120],
            grant_id=grant,
            reason=clean(reason).strip()[:REASON_AT_MOST] or None,
        )
        row.save(force_insert=True)
    return row.id


def record_of_nobody(action: str, *, what: str = "") -> UUID:
    """Keep that somebody unknown tried something that belongs to no account, such as a sign-in."""
    with scope(Scope(SYSTEM_TENANT_ID)), transaction.atomic():
        row = AuditRow(action=action, role=NOBODY, what=what[:120])
        row.save(force_insert=True)
    return row.id


def _role(actor: UUID | None, subject: UUID | None) -> str:
    """What the actor is to the subject, now: roles change, the row does not."""
    if actor is None:
        return SYSTEM
    if actor == subject:
        return CUSTOMER
    found = User.objects.filter(pk=actor).first()
    if found is None:
        return NOBODY
    if found.tenant_id is None:
        return staff.role_of(found)
    return COLLEAGUE if subject else CUSTOMER
