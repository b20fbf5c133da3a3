"""What a person may do to their account."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from memberintel.accounts.domain import Person
from memberintel.accounts.models import Profile
from memberintel.lib import text
from memberintel.tenancy.models import Tenant, Tier, User

FREE = "free"


def found_tenant(user: User) -> Tenant:
    """A tenant of its own, on the free tier, for somebody who has just signed up; they own it.

    `user` need not be saved yet; it is saved here, so that there is never one without the other.
    """
    with transaction.atomic():
        tenant = Tenant.objects.create(tier=Tier.objects.get(key=FREE))
        user.tenant = tenant
        user.is_owner = True
        user.save()
    return tenant


def save_person(person: Person) -> None:
    """Keep what the customer of the current scope told us about themselves."""
    with transaction.atomic():
        row = Profile.objects.select_for_update().first() or Profile()
        row.display_name = text.clean(person.display_name).strip()
        row.time_zone = person.time_zone
        row.language = person.language
        row.save()


def sign_out_everywhere(user: User) -> None:
    """End every sign-in of that person, wherever it is; `user` is brought up to date."""
    User.objects.filter(pk=user.pk).update(sign_outs=F("sign_outs") + 1)
    user.refresh_from_db(fields=["sign_outs"])
