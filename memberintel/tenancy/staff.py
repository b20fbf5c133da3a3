"""The roles of staff: groups of Django's, made by a migration. A person has one, or is an administrator."""

from __future__ import annotations

from typing import Any, Final

from memberintel.lib.text import clean
from memberintel.tenancy.models import User

SUPPORT: Final = "support"
LEAD: Final = "lead"
ENGINEER: Final = "engineer"
ADMINISTRATOR: Final = "administrator"  # a superuser: may do what every role may
NO_ROLE: Final = "staff"
GROUPS: Final = (LEAD, SUPPORT, ENGINEER)  # of several, the first one names the person
ROLES: Final = (*GROUPS, ADMINISTRATOR, NO_ROLE)

_METADATA: Final = (
    *("tenancy.view_user", "tenancy.view_tenant", "tenancy.view_tier"),
    *("chat.view_session", "wrapups.view_sessionlog", "brain.view_document"),
    *("wrapups.view_closingjob", "privacy.view_auditrow", "privacy.view_staffrequest"),
    *("usage.view_chargecounter", "brain.view_memoryentry", "brain.view_knowledgedraft"),
    *("wrapups.view_journalentry", "brain.view_documentversion"),
)
_SUPPORT: Final = (
    *_METADATA,
    *("wrapups.change_closingjob", "privacy.open_content", "privacy.ask_erasure"),
)
# What each role may do, as Django's permissions; after each `migrate` its group has exactly these.
PERMISSIONS: Final[dict[str, tuple[str, ...]]] = {
    SUPPORT: _SUPPORT,
    LEAD: (
        *_SUPPORT,
        *("privacy.edit_content", "privacy.approve_erasure"),
        *("tenancy.change_user", "tenancy.change_tenant", "tenancy.change_tier"),
        *("usage.view_ledgerentry", "usage.view_run", "usage.view_monthlyreport"),
        *("usage.change_chargecounter", "brain.change_knowledgedraft", "brain.add_knowledgedraft"),
        *("wrapups.view_legalreview", "wrapups.add_legalreview", "wrapups.change_legalreview"),
        *("wrapups.view_pooledgroup", "wrapups.change_pooledgroup"),
    ),
    # Sees that work stands still, and why; nobody's content, and no list of people.
    ENGINEER: (
        *("usage.view_run", "wrapups.view_closingjob"),
        *("usage.view_ledgerentry", "usage.view_monthlyreport"),
    ),
}


SHORTEST_REASON: Final = 10  # characters
REASON_AT_MOST: Final = 2_000
TOO_SHORT: Final = (
    f"Say why in a sentence, of at least {SHORTEST_REASON} characters. The customer can read it."
)


class NoReason(Exception):
    """A reason is a sentence the customer can make something of."""


def reason_in(text: str) -> str:
    """The reason somebody gave, tidied; NoReason when it says nothing."""
    said = " ".join(clean(text).split())[:REASON_AT_MOST]
    if len(said) < SHORTEST_REASON:
        raise NoReason
    return said


def is_staff(user: User) -> bool:
    """Staff belong to no tenant: a customer with a flag set by mistake is still a customer."""
    return user.is_active and user.is_staff and user.tenant_id is None


def role_of(user: User) -> str:
    """One of ROLES, for a member of staff; one query unless they are an administrator."""
    if user.is_superuser:
        return ADMINISTRATOR
    held = set(user.groups.values_list("name", flat=True))
    return next((name for name in GROUPS if name in held), NO_ROLE)


def fill_groups(sender: Any, using: str, **kwargs: Any) -> None:
    """After `migrate`: make the groups, with the rights listed. Runs as the owner, once for each app."""
    from django.apps import apps
    from django.contrib.auth.models import Group, Permission
    from django.db import connections

    if sender is not list(apps.get_app_configs())[-1]:
        return  # the rights of the last app have just been made
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT session_user")
        if cursor.fetchone() != ("owner",):
            return
    found = {
        f"{app}.{codename}": key
        for app, codename, key in Permission.objects.using(using).values_list(
            "content_type__app_label", "codename", "id"
        )
    }
    for name, permissions in PERMISSIONS.items():
        group, _ = Group.objects.using(using).get_or_create(name=name)
        group.permissions.set([found[permission] for permission in permissions if permission in found])
