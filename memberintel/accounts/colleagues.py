"""Who belongs to the current tenant, and removing them from it.

Nobody is deleted: what a removed colleague wrote stays sealed under their own key, and they may come back.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from memberintel.lib import clock
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.models import Tenant, User


class Refused(Exception):
    """It may not be done; the text is for the person who asked for it."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


class NotFound(Exception):
    """No such person in this tenant."""


def members() -> list[User]:
    """Those who can sign in: owners first, then by address."""
    rows = User.objects.filter(tenant_id=current_scope().tenant_id, is_active=True)
    return list(rows.order_by("-is_owner", "email"))


def removed() -> list[User]:
    """Those an owner removed, the latest first."""
    rows = User.objects.filter(tenant_id=current_scope().tenant_id, removed_at__isnull=False)
    return list(rows.order_by("-removed_at"))


def owners() -> list[User]:
    """The tenant's owners who can sign in."""
    return [user for user in members() if user.is_owner]


def member(person: UUID) -> User:
    """A person of the tenant, removed or not. NotFound for everybody else's."""
    found = User.objects.filter(tenant_id=current_scope().tenant_id, id=person).first()
    if found is None:
        raise NotFound
    return found


def remove(person: UUID, *, by: UUID) -> User:
    """Close the tenant to that person: they are signed out everywhere and cannot sign in again.

    Refused for oneself and for the last owner, also when two owners remove each other at once. NotFound.
    """
    with transaction.atomic():
        lock_tenant()
        found = member(person)
        if not found.is_active:
            return found
        if found.id == by:
            raise Refused("You cannot remove yourself. Ask another owner to do it.")
        if not any(owner.id == by for owner in owners()):  # removed a moment ago by somebody else
            raise Refused("Only owners remove colleagues.")
        if found.is_owner and len(owners()) == 1:
            raise Refused("This is the only owner. There must always be one.")
        found.is_active, found.removed_at = False, clock.now()
        found.sign_outs += 1
        found.save(update_fields=["is_active", "removed_at", "sign_outs"])
    return found


def let_back(person: UUID) -> User:
    """Undo `remove`. NotFound for whom no owner removed: what support switched off is not the owner's to undo."""
    with transaction.atomic():
        lock_tenant()
        found = member(person)
        if found.removed_at is None:
            raise NotFound
        found.is_active, found.removed_at = True, None
        found.save(update_fields=["is_active", "removed_at"])
    return found


def lock_tenant() -> None:
    """In a transaction: one change at a time of who belongs to the current tenant."""
    Tenant.objects.select_for_update(of=("self",)).get(id=current_scope().tenant_id)
