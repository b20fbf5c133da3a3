"""Asking people to join a tenant, and their joining it.

The link in the letter is signed and names the tenant and the invitation, so that the row is read in the
tenant's own scope although nobody is signed in yet. Whether it still counts is for the row to say: it is used
once, it can be withdrawn, and it ends after a week.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from allauth.account.models import EmailAddress
from django.core import signing
from django.db import IntegrityError, transaction

from memberintel.accounts.colleagues import Refused, lock_tenant
from memberintel.accounts.models import Invitation
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, current_scope, scope
from memberintel.tenancy.models import User

SALT: Final = "memberintel.invitation"
LASTS: Final = timedelta(days=7)
OPEN_AT_ONCE: Final = 20
BETWEEN_LETTERS: Final = timedelta(minutes=1)


class Gone(Exception):
    """The invitation was used, withdrawn, has expired or never was."""


class Registered(Exception):
    """The invited address has an account by now."""


@dataclass(frozen=True)
class Invited:
    """An invitation that counts, as its letter and its page tell of it."""

    id: UUID
    tenant_id: UUID
    email: str
    inviter: str
    expires_at: datetime


def open_invitations() -> list[Invitation]:
    """Those of the current tenant that were neither accepted nor withdrawn, newest first; some may have expired."""
    rows = Invitation.objects.filter(accepted_at=None, withdrawn_at=None)
    return list(rows.order_by("-created_at"))


def invite(email: str, *, by: UUID) -> Invited:
    """Open an invitation, or renew one that has expired; the letter is the caller's to send. Refused with why not."""
    email = email.strip().lower()
    now = clock.now()
    with transaction.atomic():
        lock_tenant()
        _refuse_known(email)
        row = Invitation.objects.filter(email=email, accepted_at=None, withdrawn_at=None).first()
        if row is None:
            if len(open_invitations()) >= OPEN_AT_ONCE:
                raise Refused(
                    f"There are {OPEN_AT_ONCE} open invitations, the most there can be at once. "
                    "Withdraw one that is no longer needed, then try again."
                )
            row = Invitation(email=email)
        elif row.expires_at > now:
            raise Refused("This address has been invited already. You can send the letter again below.")
        row.invited_by, row.sent_at, row.expires_at = by, now, now + LASTS
        row.save()
    return _as_invited(row)


def again(invitation: UUID) -> Invited:
    """Count the week anew and say what the letter must say. Gone, or Refused when a letter has just gone out."""
    now = clock.now()
    with transaction.atomic():
        row = Invitation.objects.select_for_update().filter(id=invitation).first()
        if row is None or row.accepted_at or row.withdrawn_at:
            raise Gone
        if now - row.sent_at < BETWEEN_LETTERS:
            raise Refused("A letter went out less than a minute ago. Give it a moment to arrive.")
        row.sent_at, row.expires_at = now, now + LASTS
        row.save(update_fields=["sent_at", "expires_at"])
    return _as_invited(row)


def withdraw(invitation: UUID) -> str:
    """End an open invitation; its address. Gone when it is no longer open."""
    open_ones = Invitation.objects.filter(id=invitation, accepted_at=None, withdrawn_at=None)
    with transaction.atomic():
        row = open_ones.first()
        if row is None or open_ones.update(withdrawn_at=clock.now()) != 1:
            raise Gone
    return row.email


def token(invited: Invited) -> str:
    """What the link in the letter holds."""
    return signing.dumps([invited.tenant_id.hex, invited.id.hex], salt=SALT)


def look(given: str) -> Invited:
    """The invitation a link stands for, for whoever holds it. Gone when it does not count; Registered."""
    tenant, invitation = _ids(given)
    with scope(Scope(tenant)):
        row = Invitation.objects.filter(id=invitation).first()
        if row is None or row.accepted_at or row.withdrawn_at or row.expires_at <= clock.now():
            raise Gone
        if User.objects.filter(email=row.email).exists():
            raise Registered
        return _as_invited(row)


def accept(given: str, password: str) -> User:
    """Make the invited person a colleague in the tenant that invited them. Gone or Registered, as `look`.

    Of two that use the same link at once exactly one gets in.
    """
    tenant, invitation = _ids(given)
    now, person = clock.now(), uuid7()
    counts = {"id": invitation, "accepted_at": None, "withdrawn_at": None, "expires_at__gt": now}
    try:
        with scope(Scope(tenant)), transaction.atomic():
            row = Invitation.objects.filter(**counts).first()
            used = Invitation.objects.filter(**counts).update(accepted_at=now, accepted_by=person)
            if row is None or used != 1:
                raise Gone
            user = User.objects.create_user(row.email, password, id=person, tenant_id=tenant)
            # The link came by mail to this address, so it is theirs.
            EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    except IntegrityError:
        raise Registered from None
    return user


def _ids(given: str) -> tuple[UUID, UUID]:
    try:
        tenant, invitation = signing.loads(given, salt=SALT)
        return UUID(tenant), UUID(invitation)
    except (signing.BadSignature, ValueError, TypeError):
        raise Gone from None


def _refuse_known(email: str) -> None:
    known = User.objects.filter(email=email).first()
    if known is None:
        return
    if known.tenant_id != current_scope().tenant_id:
        raise Refused(
            "There is an account for this address already, and an account belongs to one team only. "
            "Invite another address of theirs."
        )
    if known.removed_at:
        raise Refused("This colleague was removed. You can let them back in below.")
    raise Refused("This address belongs to a colleague already.")


def _as_invited(row: Invitation) -> Invited:
    inviter = User.objects.filter(id=row.invited_by).values_list("email", flat=True).first()
    return Invited(row.id, row.tenant_id, row.email, inviter or "", row.expires_at)
