"""Staff reach a customer's content in one way, and every other way is shut."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client, override_settings

from brain import queries
from brain.actions import save_document
from memberintel.lib import clock
from memberintel.privacy import opening
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from memberintel.vault import keyring
from memberintel.vault.errors import KeyUnavailable
from tests.admin.staff import clerk
from tests.conftest import Person

WHY = "They wrote that their SOUL looks garbled"
TEXT = "Be direct, says Zanzibarquagga."


@pytest.fixture
def staff() -> User:
    return clerk("support")


@pytest.fixture
def soul(alice: Person) -> str:
    with scope(alice.scope):
        save_document(kind="soul", body=TEXT, base_version=0, by="customer", reason="")
    keyring.cache.clear()
    return TEXT


def read(staff: User, whose: Person) -> str:
    with keyring.only(), opening.opened(staff=staff, whose=whose.scope, what="soul"):
        return queries.document("soul").text


def rows(person: Person) -> list[tuple[str, str]]:
    with scope(person.scope):
        return list(AuditRow.objects.order_by("id").values_list("action", "what"))


def test_with_a_grant_the_text_is_read_and_both_steps_are_on_record(
    staff: User, alice: Person, soul: str
) -> None:
    with keyring.only():
        grant = opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    assert read(staff, alice) == soul
    assert rows(alice) == [("access_granted", f"grant {grant.pk}"), ("opened", "soul")]
    with scope(alice.scope):
        found = AuditRow.objects.get(action="opened")
        assert (found.reason, found.role, found.grant_id, found.actor) == (WHY, "support", grant.pk, staff.pk)


def test_each_look_is_a_row(staff: User, alice: Person, soul: str) -> None:
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    for _ in range(3):
        read(staff, alice)
    assert [action for action, _ in rows(alice)].count("opened") == 3


def test_the_row_stands_before_anything_is_read_and_also_when_reading_fails(
    staff: User, alice: Person
) -> None:
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    with pytest.raises(ZeroDivisionError), opening.opened(staff=staff, whose=alice.scope, what="soul"):
        raise ZeroDivisionError
    assert ("opened", "soul") in rows(alice)


def test_without_a_grant_nothing_opens(staff: User, alice: Person, soul: str) -> None:
    with pytest.raises(opening.NoGrant):
        read(staff, alice)
    assert rows(alice) == []


def test_an_expired_grant_opens_nothing(staff: User, alice: Person, soul: str) -> None:
    with override_settings(ACCESS_GRANT_SECONDS=0):
        opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    with pytest.raises(opening.NoGrant):
        read(staff, alice)


def test_a_grant_ends_at_its_minute(
    staff: User, alice: Person, soul: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    assert grant.expires_at - grant.given_at == timedelta(minutes=30)
    monkeypatch.setattr(clock, "now", lambda: grant.expires_at)
    with pytest.raises(opening.NoGrant):
        read(staff, alice)


def test_a_grant_given_back_opens_nothing(staff: User, alice: Person, soul: str) -> None:
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    opening.give_back(staff=staff, whose=alice.scope)
    with pytest.raises(opening.NoGrant):
        read(staff, alice)
    assert rows(alice)[-1][0] == "access_ended"


def test_another_members_grant_opens_nothing(staff: User, alice: Person, soul: str) -> None:
    opening.ask(staff=clerk("support"), whose=alice.scope, reason=WHY)
    with pytest.raises(opening.NoGrant):
        read(staff, alice)


def test_a_grant_for_another_customer_opens_nothing(
    staff: User, alice: Person, bob: Person, charlie: Person, soul: str
) -> None:
    for other in (bob, charlie):
        opening.ask(staff=staff, whose=other.scope, reason=WHY)
    with pytest.raises(opening.NoGrant):
        read(staff, alice)


def test_entering_the_scope_directly_opens_nothing(staff: User, alice: Person, soul: str) -> None:
    """Not even while the key lies in this process, nor under a grant that another look is using."""
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    assert read(staff, alice) == soul  # the key is cached now
    with keyring.only(), scope(alice.scope), pytest.raises(KeyUnavailable):
        queries.document("soul")


def test_under_one_customers_grant_anothers_content_stays_shut(
    staff: User, alice: Person, charlie: Person, soul: str
) -> None:
    opening.ask(staff=staff, whose=charlie.scope, reason=WHY)
    with (
        opening.opened(staff=staff, whose=charlie.scope, what="soul"),
        scope(alice.scope),
        pytest.raises(KeyUnavailable),
    ):
        queries.document("soul")


def test_content_is_not_opened_inside_a_transaction_that_could_undo_its_record(
    staff: User, alice: Person, soul: str
) -> None:
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    with scope(alice.scope), transaction.atomic(), pytest.raises(RuntimeError, match="committed first"):
        read(staff, alice)


@pytest.mark.parametrize("reason", ["", "   ", "because", "\x00" * 30])
def test_a_reason_says_something(staff: User, alice: Person, reason: str) -> None:
    with pytest.raises(opening.NoReason):
        opening.ask(staff=staff, whose=alice.scope, reason=reason)


def test_only_staff_whose_role_opens_content_get_a_grant(alice: Person, bob: Person) -> None:
    off = clerk("support")
    off.is_active = False
    for who in (alice.user, bob.user, off, clerk("engineer"), clerk("")):
        with pytest.raises(opening.NotAllowed):
            opening.ask(staff=who, whose=alice.scope, reason=WHY)


def test_a_role_taken_away_ends_what_it_allowed(staff: User, alice: Person, soul: str) -> None:
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    User.groups.through.objects.using("support").filter(user_id=staff.pk).delete()
    with pytest.raises(opening.NotAllowed):
        read(User.objects.get(pk=staff.pk), alice)


def test_an_edit_and_its_record_are_one(alice: Person, soul: str) -> None:
    lead = clerk("lead")
    opening.ask(staff=lead, whose=alice.scope, reason=WHY)
    act: dict[str, Any] = {"staff": lead, "whose": alice.scope, "what": "soul", "action": "edited"}
    with opening.acting(**act, reason=WHY):
        save_document(kind="soul", body="Other words", base_version=1, by="staff", reason="")
        transaction.set_rollback(True)
    with scope(alice.scope):
        assert queries.document("soul").text == soul
    assert "edited" not in dict(rows(alice))
    with opening.acting(**act, reason=WHY):
        save_document(kind="soul", body="Other words", base_version=1, by="staff", reason="")
    assert dict(rows(alice))["edited"] == "soul"


def test_support_reads_and_does_not_edit(staff: User, alice: Person, soul: str) -> None:
    opening.ask(staff=staff, whose=alice.scope, reason=WHY)
    act: dict[str, Any] = {"staff": staff, "whose": alice.scope, "what": "soul", "action": "edited"}
    with pytest.raises(opening.NotAllowed), opening.acting(**act, reason=WHY):
        raise AssertionError


def test_nobody_signed_in_is_nobody(alice: Person) -> None:
    assert Client().get(f"/admin/open/soul/{alice.user.pk}/").status_code == 302
