"""The audit: one row for each thing staff do, and for what concerns the safety of an account.

Rows are written in the scope they belong to and in the caller's transaction, so that an act and its row stand
or fall together; without a transaction the row is committed by itself. Nothing in them is in the clear but ids,
times and words of ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast
from uuid import UUID

from django.db import connection, models, transaction
from django.http import HttpRequest

from memberintel.lib.text import clean
from memberintel.privacy.models import COLLEAGUE, CUSTOMER, NOBODY, SYSTEM, AuditRow
from memberintel.tenancy import staff
from memberintel.tenancy.context import SYSTEM_TENANT_ID, Scope, scope, scope_or_none
from memberintel.tenancy.models import Tenant, User
from memberintel.vault import keyring
from memberintel.vault.owner import Owner


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
    with scope(wanted), transaction.atomic(), keyring.only(owner_of(tenant, subject)):
        row = AuditRow(
            customer_id=subject,
            action=action,
            actor=actor,
            role=_role(actor, subject),
            what=what[:120],
            grant_id=grant,
            reason=clean(reason).strip()[: staff.REASON_AT_MOST] or None,
        )
        row.save(force_insert=True)
    return row.id


def owner_of(tenant: UUID, subject: UUID | None) -> Owner:
    """Under whose key the words about a customer stand, or about a tenant as a whole."""
    return Owner("customer" if subject else "tenant", tenant, subject)


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


def note_act(
    sender: object, *, request: HttpRequest, row: models.Model, action: str, reason: str, **kwargs: Any
) -> None:
    """What staff did to a row on the desk (signal `acted`), in the transaction that did it.

    Django holds a transaction without a scope while it adds a row; what is added is kept as soon as that is over.
    """
    tenant, subject = getattr(row, "tenant_id", None), getattr(row, "customer_id", None)
    if isinstance(row, Tenant):
        tenant = row.pk
    elif isinstance(row, User):
        subject = row.pk if tenant else None
    actor, what = cast(User, request.user).pk, f"{row._meta.model_name} {row.pk}"
    keep = partial(
        record,
        action,
        actor=actor,
        subject=subject,
        tenant=tenant or SYSTEM_TENANT_ID,
        what=what,
        reason=reason,
    )
    if scope_or_none() is None and connection.in_atomic_block:
        transaction.on_commit(keep)
    else:
        keep()
