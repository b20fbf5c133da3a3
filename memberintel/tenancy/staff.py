"""The roles of staff: groups of Django's, made by a migration. A person has one, or is an administrator."""

from __future__ import annotations

from typing import Final

from memberintel.tenancy.models import User

SUPPORT: Final = "support"
LEAD: Final = "lead"
ENGINEER: Final = "engineer"
ADMINISTRATOR: Final = "administrator"  # a superuser: may do what every role may
NO_ROLE: Final = "staff"
GROUPS: Final = (LEAD, SUPPORT, ENGINEER)  # of several, the first one names the person
ROLES: Final = (*GROUPS, ADMINISTRATOR, NO_ROLE)


def is_staff(user: User) -> bool:
    """Staff belong to no tenant: a customer with a flag set by mistake is still a customer."""
    return user.is_active and user.is_staff and user.tenant_id is None


def role_of(user: User) -> str:
    """One of ROLES, for a member of staff; one query unless they are an administrator."""
    if user.is_superuser:
        return ADMINISTRATOR
    held = set(user.groups.values_list("name", flat=True))
    return next((name for name in GROUPS if name in held), NO_ROLE)
