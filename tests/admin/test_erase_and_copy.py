"""A customer is erased, or given a copy, from the desk: step by step, by whom, and what is on record of it."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from brain.actions import save_document
from memberintel.privacy import erase, export, tasks
from memberintel.privacy.models import AuditRow, Erasure, StaffRequest
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person, make_person

WHY = "They asked for it in a letter, and we called back"


@pytest.fixture(scope="module")
def support(django_db_blocker: Any) -> Client:
    with django_db_blocker.unblock():
        return sign_in(make_staff(role="support"))


@pytest.fixture(scope="module")
def lead(django_db_blocker: Any) -> Client:
    with django_db_blocker.unblock():
        return sign_in(make_staff(role="lead"))


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(tasks, "nudge", lambda: found.append("erase"))
    return found


def page(who: Person) -> str:
    return reverse("admin:ask_erasure", args=[who.user.pk])


def post(client: Client, who: Person, **form: str) -> Any:
    """What the page sends as it stands now: it names the request it shows."""
    shown = re.search(r'name="request" value="([^"]+)"', client.get(page(who)).content.decode())
    named = {"request": shown[1]} if shown else {}
    return client.post(page(who), named | form, follow=True)


def test_one_asks_a_second_approves_and_it_is_carried_out(
    support: Client, lead: Client, bob: Person, nudged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert page(bob) in support.get(f"/admin/tenancy/user/{bob.user.pk}/change/").content.decode()
    asked = post(support, bob, reason=WHY).content.decode()
    assert "A second person has to approve it" in asked
    assert "Withdraw" in asked
    assert post(support, bob, act="approved", reason=WHY).status_code == 409
    assert post(lead, bob, act="erase", email=bob.user.email).status_code == 409
    approved = post(lead, bob, act="approved", reason=WHY).content.decode()
    assert "Type their address" in approved
    wrong = post(support, bob, act="erase", email="somebody@example.com")
    assert (wrong.status_code, b"Nothing was erased" in wrong.content) == (409, True)
    assert (Erasure.objects.filter(person=bob.user.pk).exists(), nudged) == (False, [])
    done = post(support, bob, act="erase", email=f" {bob.user.email.upper()} ").content.decode()
    assert "their key goes first" in done
    begun = Erasure.objects.get(person=bob.user.pk)
    assert nudged == ["erase"]
    assert not User.objects.get(pk=bob.user.pk).is_active
    monkeypatch.setattr(erase, "STRAGGLERS", timedelta(0))
    erase.proceed(begun)
    with scope(bob.scope):
        assert StaffRequest.objects.get(pk=str(begun.request)).done_at
        actions = list(AuditRow.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["erasure_asked", "erasure_approved", "erasure_begun", "erased"]
    assert "Erased on" in lead.get(page(bob)).content.decode()


def test_it_is_declined_or_withdrawn(support: Client, lead: Client, bob: Person, nudged: list[str]) -> None:
    post(support, bob, reason=WHY)
    assert "Declined" in post(lead, bob, act="declined", reason=WHY).content.decode()
    post(support, bob, reason=WHY)
    assert "Withdrawn" in post(support, bob, act="withdrawn", reason=WHY).content.decode()
    assert post(lead, bob, act="approved", reason=WHY).status_code == 409
    assert not Erasure.objects.filter(person=bob.user.pk).exists()


def test_what_was_approved_is_withdrawn_by_either_until_it_begins(
    support: Client, lead: Client, bob: Person, nudged: list[str]
) -> None:
    for who in (support, lead):
        post(support, bob, reason=WHY)
        post(lead, bob, act="approved", reason=WHY)
        other = sign_in(make_staff(role="lead"))
        assert post(other, bob, act="withdrawn", reason=WHY).status_code == 409
        assert "Withdrawn" in post(who, bob, act="withdrawn", reason=WHY).content.decode()
        assert post(support, bob, act="erase", email=bob.user.email).status_code == 409
    post(support, bob, reason=WHY)
    post(lead, bob, act="approved", reason=WHY)
    shown = re.search(r'name="request" value="([^"]+)"', lead.get(page(bob)).content.decode())
    assert shown
    post(support, bob, act="erase", email=bob.user.email)
    late = lead.post(page(bob), {"act": "withdrawn", "reason": WHY, "request": shown[1]})
    assert (late.status_code, b"being erased already" in late.content) == (409, True)


def test_only_the_request_that_was_read_is_decided(
    support: Client, lead: Client, bob: Person, nudged: list[str]
) -> None:
    post(support, bob, reason=WHY)
    read = re.search(r'name="request" value="([^"]+)"', lead.get(page(bob)).content.decode())
    assert read
    post(support, bob, act="withdrawn", reason=WHY)
    post(support, bob, reason="Something else altogether, for another reason")
    late = lead.post(page(bob), {"act": "approved", "reason": WHY, "request": read[1]})
    assert (late.status_code, b"decided already" in late.content) == (409, True)
    with scope(bob.scope):
        assert not StaffRequest.objects.filter(decision="approved").exists()


def test_of_who_is_erased_nothing_is_opened_and_nothing_breaks(lead: Client, nudged: list[str]) -> None:
    who = make_person(tier="pro", name="erased")
    with scope(who.scope):
        save_document(kind="soul", body="Be direct.", base_version=0, by="customer", reason="")
    soul, people = reverse("admin:open", args=["soul", who.user.pk]), "/admin/tenancy/user/"
    assert lead.post(soul, {"reason": WHY}).status_code == 302
    erase.proceed(erase.begin(who.scope, by=who.user.pk))
    activate = {"action": "activate", "_selected_action": str(who.user.pk), "confirmed": 1, "reason": WHY}
    for answer in (
        lead.get(soul),
        lead.post(soul, {"reason": WHY}),
        lead.post(page(who), {"reason": WHY}),
        lead.post(reverse("admin:take_copy", args=[who.user.pk]), {"reason": WHY}),
        lead.post(people, activate),
    ):
        assert (answer.status_code, b"their key is gone" in answer.content) == (409, True)
    assert not User.objects.get(pk=who.user.pk).is_active


def test_the_last_owner_of_colleagues_stays(
    support: Client, lead: Client, alice: Person, bob: Person, nudged: list[str]
) -> None:
    post(support, alice, reason=WHY)
    post(lead, alice, act="approved", reason=WHY)
    refused = post(lead, alice, act="erase", email=alice.user.email)
    assert (refused.status_code, b"made an owner first" in refused.content) == (409, True)
    assert not Erasure.objects.filter(person=alice.user.pk).exists()


def copied(response: Any) -> bytes:
    async def joined() -> bytes:
        return b"".join([block async for block in response.streaming_content])

    return asyncio.run(joined())


def test_a_lead_takes_a_copy_with_a_reason_and_on_record(lead: Client, support: Client) -> None:
    who = make_person(tier="pro", name="copied")
    with scope(who.scope):
        save_document(kind="soul", body="Be direct.", base_version=0, by="customer", reason="")
    address = reverse("admin:take_copy", args=[who.user.pk])
    assert support.post(address, {"reason": WHY}).status_code == 403
    assert lead.post(address, {"reason": "because"}).status_code == 400
    with scope(who.scope):
        assert not AuditRow.objects.exists()
    archive = zipfile.ZipFile(io.BytesIO(copied(lead.post(address, {"reason": WHY}))))
    assert "Be direct." in archive.read("brain/SOUL.md").decode()
    with scope(who.scope):
        rows = list(AuditRow.objects.order_by("id").values_list("action", "role"))
        assert rows == [
            ("access_granted", "lead"),
            ("opened", "lead"),
            ("exported", "lead"),
            ("access_ended", "lead"),
        ]
    theirs = Client()
    theirs.force_login(who.user, "django.contrib.auth.backends.ModelBackend")
    assert "took a copy of everything of yours" in theirs.get("/privacy/").content.decode()


def test_no_copy_is_begun_while_enough_are_made(lead: Client, alice: Person, monkeypatch: Any) -> None:
    monkeypatch.setattr(export, "AT_ONCE", 0)
    refused = lead.post(reverse("admin:take_copy", args=[alice.user.pk]), {"reason": WHY})
    assert refused.status_code == 503
    with scope(alice.scope):
        assert not AuditRow.objects.exists()
