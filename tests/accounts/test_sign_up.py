from __future__ import annotations

from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import Client

from memberintel.accounts import queries
from memberintel.accounts.domain import Person as Known
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import Tenant, User
from tests.conftest import Person

PASSWORD = "a very good password"


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def sign_up(client: Client, email: str) -> User:
    response = client.post("/accounts/signup/", {"email": email, "password1": PASSWORD})
    assert (response.status_code, response["Location"]) == (302, "/chat/")
    return User.objects.get(email=email.lower())


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_sign_up_makes_a_free_tenant_that_the_new_user_owns() -> None:
    client = Client()
    user = sign_up(client, f"New.Owner-{uuid4().hex[:8]}@example.com")
    assert user.tenant is not None
    assert (user.tenant.tier_id, user.is_owner, user.is_staff) == ("free", True, False)
    assert client.get("/chat/").status_code == 200


def test_two_sign_ups_share_no_tenant() -> None:
    users = [sign_up(Client(), f"owner-{uuid4().hex[:8]}@example.com") for _ in range(2)]
    assert users[0].tenant_id != users[1].tenant_id


def test_a_refused_sign_up_leaves_no_tenant_behind() -> None:
    before = Tenant.objects.count()
    response = Client().post("/accounts/signup/", {"email": "not an address", "password1": "short"})
    assert response.status_code == 200
    assert b"not an address" in response.content
    assert Tenant.objects.count() == before


def test_the_case_of_an_address_does_not_matter_at_sign_in() -> None:
    user = sign_up(Client(), f"owner-{uuid4().hex[:8]}@example.com")
    response = Client().post("/accounts/login/", {"login": user.email.upper(), "password": PASSWORD})
    assert (response.status_code, response["Location"]) == (302, "/chat/")


@pytest.mark.parametrize(
    "path", ["/chat/", "/sessions/", "/brain/", "/brain/soul/", "/wrap-ups/", "/settings/"]
)
def test_a_stranger_is_asked_to_sign_in_and_comes_back(path: str) -> None:
    response = Client().get(path)
    assert (response.status_code, response["Location"]) == (302, f"/accounts/login/?next={path}")


def test_staff_have_no_conversation_and_go_to_the_support_desk() -> None:
    staff = User.objects.create_superuser(f"staff-{uuid4().hex[:8]}@example.com", PASSWORD)
    response = signed_in(staff).get("/chat/")
    assert (response.status_code, response["Location"]) == (302, "/admin/")
    response = Client().post("/accounts/login/", {"login": staff.email, "password": PASSWORD})
    assert response["Location"] == "/admin/"


def test_somebody_switched_off_is_signed_out_at_once(alice: Person) -> None:
    client = signed_in(alice.user)
    assert client.get("/chat/").status_code == 200
    alice.user.is_active = False
    alice.user.save(update_fields=["is_active"])
    assert client.get("/chat/")["Location"].startswith("/accounts/login/")


def test_every_page_says_when_the_offline_advisor_answers(alice: Person, settings: LazySettings) -> None:
    client = signed_in(alice.user)
    words = ("The offline advisor is answering", "ANTHROPIC_API_KEY")
    for route, said in (("offline:extractive", True), ("scripted:x", False)):
        settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": (route,)}
        for path in ("/chat/", "/brain/"):
            page = client.get(path).content.decode()
            assert [each in page for each in words] == [said, said]


def test_settings_are_kept_for_the_person_alone(alice: Person, bob: Person) -> None:
    client = signed_in(alice.user)
    given = {"display_name": "<b>Alice</b>", "time_zone": "Europe/Berlin", "language": "de"}
    assert client.post("/settings/", given).status_code == 302
    with scope(alice.scope):
        assert queries.person() == Known("<b>Alice</b>", "Europe/Berlin", "de")
    page = client.get("/settings/").content.decode()
    assert "&lt;b&gt;Alice&lt;/b&gt;" in page
    assert "<b>Alice</b>" not in page
    with scope(bob.scope):
        assert queries.person() == Known()


def test_a_time_zone_that_does_not_exist_is_refused_and_what_was_typed_comes_back(alice: Person) -> None:
    given = {"display_name": "Alice", "time_zone": "Mars/Olympus", "language": "de"}
    response = signed_in(alice.user).post("/settings/", given)
    assert response.status_code == 400
    assert 'value="Alice"' in response.content.decode()
