"""The one way for staff to a customer's content: a grant with a reason first, then each look, on record.

Both rows, the grant's and the look's, are committed before anything is opened. A page of the desk runs without
anybody's key (`keyring.only()`); here the key of the customer the grant is for is given out, for the length of
the look.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import connection, transaction

from memberintel.lib import clock
from memberintel.privacy import audit
from memberintel.privacy.models import AccessGrant
from memberintel.tenancy import staff as roles
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import User
from memberintel.tenancy.staff import NoReason, reason_in
from memberintel.vault import keyring
from memberintel.vault.owner import Owner

OPEN: Final = "privacy.open_content"
__all__ = [
    "EDIT",
    "OPEN",
    "NoGrant",
    "NoReason",
    "NotAllowed",
    "acting",
    "ask",
    "give_back",
    "opened",
    "standing",
]
EDIT: Final = "privacy.edit_content"


class NotAllowed(Exception):
    """The person is no member of staff, or their role does not open content."""


class NoGrant(Exception):
    """This member of staff has no grant for this customer that stands now."""


def ask(*, staff: User, whose: Scope, reason: str) -> AccessGrant:
    """Give `staff` leave to open that customer's content for a while. Committed when this returns.

    Raises NotAllowed, NoReason.
    """
    _require(staff, OPEN)
    said, now = reason_in(reason), clock.now()
    with _in_scope_of(whose), transaction.atomic(durable=True):
        until = now + timedelta(seconds=settings.ACCESS_GRANT_SECONDS)
        grant = AccessGrant(staff=staff.pk, reason=said, given_at=now, expires_at=until)
        grant.save(force_insert=True)
        audit.record(
            "access_granted",
            actor=staff.pk,
            subject=whose.customer_id,
            tenant=whose.tenant_id,
            what=f"grant {grant.pk}",
            reason=said,
            grant=grant.pk,
        )
    return grant


def standing(*, staff: User, whose: Scope) -> AccessGrant | None:
    """The grant under which `staff` may open that customer's content now; its reason stays sealed."""
    with scope(whose):
        found = AccessGrant.objects.filter(staff=staff.pk, ended_at=None, expires_at__gt=clock.now())
        return found.order_by("-expires_at").first()


def give_back(*, staff: User, whose: Scope) -> None:
    """End the grants of `staff` for that customer before their time."""
    with _in_scope_of(whose), transaction.atomic(durable=True):
        open_now = AccessGrant.objects.filter(staff=staff.pk, ended_at=None, expires_at__gt=clock.now())
        if open_now.update(ended_at=clock.now()):
            audit.record("access_ended", actor=staff.pk, subject=whose.customer_id, tenant=whose.tenant_id)


@contextmanager
def opened(*, staff: User, whose: Scope, what: str) -> Iterator[AccessGrant]:
    """Inside, `staff` read that customer's content in the customer's scope; that they do is committed first.

    `what` is a kind and an id. Raises NotAllowed, NoGrant; RuntimeError inside a transaction, with which the
    record could be undone.
    """
    if connection.in_atomic_block:
        raise RuntimeError("content is opened outside of transactions: its record must be committed first")
    with _in_scope_of(whose), transaction.atomic(durable=True):
        grant = _look(staff, whose, "opened", what, permission=OPEN)
    with _in_scope_of(whose):
        yield grant


@contextmanager
def acting(*, staff: User, whose: Scope, what: str, action: str, reason: str) -> Iterator[AccessGrant]:
    """Inside, `staff` change that customer's content on their behalf: the change and its record are one transaction.

    Needs a grant too, since nobody edits what they have not read. Raises NotAllowed, NoGrant, NoReason.
    """
    said = reason_in(reason)
    with _in_scope_of(whose), transaction.atomic(durable=True):
        yield _look(staff, whose, action, what, permission=EDIT, reason=said)


def _look(
    staff: User, whose: Scope, action: str, what: str, *, permission: str, reason: str = ""
) -> AccessGrant:
    _require(staff, permission)
    grant = standing(staff=staff, whose=whose)
    if grant is None:
        raise NoGrant
    audit.record(
        action,
        actor=staff.pk,
        subject=whose.customer_id,
        tenant=whose.tenant_id,
        what=what,
        reason=reason or grant.reason,
        grant=grant.pk,
    )
    return grant


def _require(staff: User, permission: str) -> None:
    if not roles.is_staff(staff) or not staff.has_perm(permission):
        raise NotAllowed


def _customer(whose: Scope) -> Owner:
    if whose.customer_id is None:
        raise ValueError("a grant is for one customer's content")
    return Owner("customer", whose.tenant_id, whose.customer_id)


@contextmanager
def _in_scope_of(whose: Scope) -> Iterator[None]:
    """The customer's scope, with their key and their tenant's at hand and no other."""
    with scope(whose), keyring.only(_customer(whose), Owner("tenant", whose.tenant_id)):
        yield
