"""An erasure that staff ask for takes two people, whatever a page or a person tries."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from memberintel.privacy import requests
from memberintel.privacy.models import AuditRow, StaffRequest
from memberintel.privacy.requests import Decision, Refused
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import User
from tests.admin.staff import clerk
from tests.conftest import Person

WHY = "They asked for it in a letter of last week"


@pytest.fixture
def asker() -> User:
    return clerk("lead")


@pytest.fixture
def asked(asker: User, alice: Person) -> StaffRequest:
    return requests.ask_erasure(staff=asker, whose=alice.scope, reason=WHY)


def decide(row: StaffRequest, decision: Decision, by: User) -> None:
    whose = Scope(row.tenant_id, row.customer_id)
    requests.decide(row.pk, decision, staff=by, whose=whose, reason=WHY)


def test_a_second_person_approves_and_all_is_on_record(
    asked: StaffRequest, asker: User, alice: Person
) -> None:
    second = clerk("lead")
    assert requests.approved(alice.scope) is None
    decide(asked, "approved", second)
    found = requests.approved(alice.scope)
    assert found is not None
    assert (found.asked_by, found.decided_by) == (asker.pk, second.pk)
    with scope(alice.scope):
        assert found.reason == WHY
        rows = AuditRow.objects.order_by("id").values_list("action", "actor")
        assert list(rows) == [("erasure_asked", asker.pk), ("erasure_approved", second.pk)]
        requests.carried_out(found)
    assert requests.approved(alice.scope) is None


def test_nobody_approves_their_own(asked: StaffRequest, asker: User, alice: Person) -> None:
    with pytest.raises(Refused, match="second person"):
        decide(asked, "approved", asker)
    with scope(alice.scope), pytest.raises(IntegrityError, match="second_person"), transaction.atomic():
        StaffRequest.objects.update(decision="approved", decided_by=asker.pk, decided_at=asked.asked_at)
    assert requests.approved(alice.scope) is None


@pytest.mark.parametrize("role", ["support", "engineer", ""])
def test_only_a_lead_approves(asked: StaffRequest, role: str) -> None:
    with pytest.raises(Refused, match="role"):
        decide(asked, "approved", clerk(role))


def test_who_asked_withdraws_and_nobody_else(asked: StaffRequest, asker: User, alice: Person) -> None:
    with pytest.raises(Refused):
        decide(asked, "withdrawn", clerk("lead"))
    decide(asked, "withdrawn", asker)
    with pytest.raises(Refused, match="already"):
        decide(asked, "approved", clerk("lead"))
    assert requests.ask_erasure(staff=asker, whose=alice.scope, reason=WHY)


def test_the_same_is_asked_once(asked: StaffRequest, alice: Person) -> None:
    with pytest.raises(Refused, match="already"):
        requests.ask_erasure(staff=clerk("support"), whose=alice.scope, reason=WHY)


def test_customers_and_engineers_ask_for_nothing_here(alice: Person) -> None:
    for who in (alice.user, clerk("engineer")):
        with pytest.raises(Refused):
            requests.ask_erasure(staff=who, whose=alice.scope, reason=WHY)


def test_what_was_asked_cannot_be_rewritten(asked: StaffRequest, alice: Person) -> None:
    with scope(alice.scope), connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_column_privilege(current_user, 'staff_requests', 'asked_by', 'UPDATE'),"
            " has_column_privilege(current_user, 'access_grants', 'expires_at', 'UPDATE')"
        )
        assert cursor.fetchone() == (False, False)
