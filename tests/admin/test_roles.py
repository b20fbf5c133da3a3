"""What each role sees and does: every role at every page of the desk."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from memberintel.tenancy.staff import ENGINEER, LEAD, PERMISSIONS, SUPPORT
from tests.admin.staff import make_staff, sign_in
from tests.admin.test_pages import MODELS, list_url

# Whose list is for whom. A page that is not named here fails the test below.
LISTS = {
    "tenancy.User": {SUPPORT, LEAD},
    "tenancy.Tenant": {SUPPORT, LEAD},
    "tenancy.Tier": {SUPPORT, LEAD},
    "chat.Session": {SUPPORT, LEAD},
    "wrapups.SessionLog": {SUPPORT, LEAD},
    "brain.Document": {SUPPORT, LEAD},
    "privacy.AuditRow": {SUPPORT, LEAD},
    "privacy.StaffRequest": {SUPPORT, LEAD},
    "wrapups.ClosingJob": {SUPPORT, LEAD, ENGINEER},
    "usage.Run": {LEAD, ENGINEER},
    "usage.LedgerEntry": {LEAD, ENGINEER},
    "usage.MonthlyReport": {LEAD, ENGINEER},
    "usage.ChargeCounter": {SUPPORT, LEAD},
    "brain.DocumentVersion": {SUPPORT, LEAD},
    "wrapups.JournalEntry": {SUPPORT, LEAD},
    "brain.MemoryEntry": {SUPPORT, LEAD},
    "brain.KnowledgeDraft": {SUPPORT, LEAD},
    "wrapups.LegalReview": {LEAD},
}


@pytest.fixture(scope="module")
def desks(django_db_blocker: Any) -> dict[str, Client]:
    with django_db_blocker.unblock():
        return {role: sign_in(make_staff(role=role)) for role in PERMISSIONS} | {
            "": sign_in(make_staff(superuser=False))
        }


def test_a_group_has_exactly_the_rights_of_its_role() -> None:
    there = {
        f"{each.content_type.app_label}.{each.codename}"
        for each in Permission.objects.select_related("content_type")
    }
    for name, listed in PERMISSIONS.items():
        wanted = there.intersection(listed)
        held = Group.objects.get(name=name).permissions.select_related("content_type")
        assert {f"{each.content_type.app_label}.{each.codename}" for each in held} == wanted


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_each_role_at_each_list(desks: dict[str, Client], model: Any) -> None:
    for role, client in desks.items():
        expected = 200 if role in LISTS[model._meta.label] else 403
        assert client.get(list_url(model)).status_code == expected, role


def test_each_role_at_the_sums_and_the_first_page(desks: dict[str, Client]) -> None:
    for role, client in desks.items():
        allowed = role in {LEAD, ENGINEER}
        assert client.get(reverse("admin:usage_ledgerentry_sums")).status_code == (200 if allowed else 403)
        page = client.get("/admin/")
        assert page.status_code == 200
        assert ("Spend in" in page.content.decode()) is allowed, role


def test_an_engineer_has_no_list_of_people_and_none_of_their_content() -> None:
    assert not [
        right for right in PERMISSIONS[ENGINEER] if right.startswith(("tenancy", "chat", "brain", "privacy"))
    ]
