"""What a customer reads about who looked, on the page and over the API."""

from __future__ import annotations

import html
import re

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from memberintel.privacy import audit, opening
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import SYSTEM_TENANT_ID, Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.vault import destroy
from tests.admin.staff import PASSWORD, clerk, make_staff, sign_in
from tests.conftest import Person, make_person

WHY = "They wrote that <b>their SOUL</b> looks garbled"


def browser(person: Person) -> Client:
    client = Client()
    client.force_login(person.user, "django.contrib.auth.backends.ModelBackend")
    return client


def look(person: Person, role: str = "support") -> User:
    staff = clerk(role)
    opening.ask(staff=staff, whose=person.scope, reason=WHY)
    with opening.opened(staff=staff, whose=person.scope, what=f"soul {person.user.pk}"):
        pass
    return staff


def test_the_page_says_who_looked_what_and_why(alice: Person) -> None:
    staff = look(alice)
    page = browser(alice).get("/privacy/").content.decode()
    assert "Support staff opened SOUL" in page
    assert "Support staff was let in, to look" in page
    assert "&lt;b&gt;their SOUL&lt;/b&gt; looks garbled" in page
    assert staff.email not in page  # the desk answers for its people


def test_the_page_says_how_long_things_are_kept(alice: Person) -> None:
    assert "Kept until you delete a conversation." in browser(alice).get("/privacy/").content.decode()
    tenant = Tenant.objects.filter(pk=alice.scope.tenant_id)
    tenant.update(keep_events=1, keep_memory=400)
    page = browser(alice).get("/privacy/").content.decode()
    assert "Kept for 1 day after the last message." in page
    assert "An entry is kept for 400 days" in page
    assert "Kept until you delete one." in page
    tenant.update(keep_events=None, keep_memory=None)


def test_nobody_has_looked(alice: Person) -> None:
    assert "Nobody has looked" in browser(alice).get("/privacy/").content.decode()


def test_neither_a_colleague_nor_a_stranger_reads_it(alice: Person, bob: Person, charlie: Person) -> None:
    look(alice)
    for other in (bob, charlie):
        client = browser(other)
        assert "Nobody has looked" in client.get("/privacy/").content.decode()
        assert client.get("/api/v1/privacy/audit/").json()["items"] == []


def test_a_page_at_a_time_each_entry_once(alice: Person) -> None:
    for _ in range(20):
        look(alice)
    client, seen, address = browser(alice), [], "/api/v1/privacy/audit/?limit=7"
    while address:
        told = client.get(address).json()
        seen += [item["id"] for item in told["items"]]
        address = told["next"]
    assert len(seen) == len(set(seen)) == 40
    assert seen == sorted(seen, reverse=True)
    first = client.get("/privacy/").content.decode()
    further = html.unescape(re.findall(r'href="(\?[^"]*before_id[^"]*)"', first)[0])
    pages = (first, client.get(f"/privacy/{further}").content.decode())
    assert [page.count("looks garbled") for page in pages] == [25, 15]


def test_the_api_tells_the_same(alice: Person) -> None:
    look(alice, "lead")
    (opened, granted) = browser(alice).get("/api/v1/privacy/audit/").json()["items"]
    assert (opened["action"], opened["who"], opened["what"], opened["reason"]) == (
        "opened",
        "Support staff (lead)",
        "SOUL",
        WHY,
    )
    assert granted["action"] == "access_granted"


@pytest.mark.parametrize("query", ["before=x&before_id=y", "before_id=1", "before=2026-01-01T00:00:00Z"])
def test_a_cursor_that_is_none_is_refused(alice: Person, query: str) -> None:
    client = browser(alice)
    assert client.get(f"/privacy/?{query}").status_code == 400
    assert client.get(f"/api/v1/privacy/audit/?{query}").status_code == 400


# --- sign-ins --------------------------------------------------------------------------------------------


def actions(whose: Scope) -> list[tuple[str, str]]:
    with scope(whose):
        return list(AuditRow.objects.order_by("id").values_list("action", "role"))


def test_sign_ins_that_work_and_that_do_not_are_listed() -> None:
    dora = make_person(tier="pro", name="dora", password=PASSWORD)
    client = Client()
    client.post("/accounts/login/", {"login": dora.user.email, "password": "not the password"})
    client.post("/accounts/login/", {"login": dora.user.email.upper(), "password": PASSWORD})
    page = client.get("/privacy/?show=sign-ins").content.decode()
    assert "Somebody tried to sign in and could not" in page
    assert "You signed in" in page
    client.post("/accounts/logout/")
    assert actions(dora.scope) == [
        ("sign_in_failed", "system"),
        ("signed_in", "customer"),
        ("signed_out", "customer"),
    ]


def test_a_sign_in_of_nobody_keeps_no_address() -> None:
    Client().post("/accounts/login/", {"login": "my-secret-password@example.com", "password": "x"})
    with scope(Scope(SYSTEM_TENANT_ID)):
        row = AuditRow.objects.filter(action="sign_in_failed").latest("id")
    assert (row.actor, row.customer_id, row.what, row.reason) == (None, None, "", None)


def test_staff_sign_ins_and_their_factors_are_kept_with_the_system() -> None:
    staff = make_staff()
    sign_in(staff)
    with scope(Scope(SYSTEM_TENANT_ID)):
        rows = AuditRow.objects.filter(actor=staff.pk).order_by("id").values_list("action", "what", "role")
        assert list(rows) == [
            ("signed_in", "", "administrator"),
            ("second_factor_added", "factor totp", "administrator"),
            ("second_factor_added", "factor recovery_codes", "administrator"),
        ]
    assert Authenticator.objects.filter(user=staff).count() == 2


def test_a_reason_that_does_not_open_hides_no_line(alice: Person) -> None:
    audit.record(
        "opened", actor=clerk("support").pk, subject=alice.user.pk, tenant=alice.scope.tenant_id, reason=WHY
    )
    with scope(alice.scope):
        assert destroy.destroy_customer_key()
    page = browser(alice).get("/privacy/").content.decode()
    assert "Support staff opened" in page
