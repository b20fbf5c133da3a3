"""Who gets to the support desk: staff with a second factor. To everybody else it does not exist."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from django.contrib.auth import get_user_model
from django.test import Client

from memberintel.accounts.two_factor import TwoFactorAdapter
from memberintel.tenancy.models import User
from tests.admin.staff import PASSWORD, code_for, enrol, make_staff, sign_in
from tests.conftest import Person


@pytest.fixture
def staff() -> User:
    return make_staff()


def where(response: Any) -> str:
    """The path a response redirects to."""
    assert response.status_code == 302, response.status_code
    return str(urlsplit(response["Location"]).path)


def test_a_stranger_is_asked_to_sign_in() -> None:
    response = Client().get("/admin/chat/session/")
    assert where(response) == "/accounts/login/"
    assert parse_qs(urlsplit(response["Location"]).query)["next"] == ["/admin/chat/session/"]


def test_the_desk_has_no_sign_in_of_its_own() -> None:
    assert where(Client().get("/admin/login/")) == "/accounts/login/"


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/chat/session/", "/admin/usage/ledgerentry/sums/", "/admin/search/"]
)
def test_to_a_customer_it_does_not_exist(alice: Person, path: str) -> None:
    client = Client()
    client.force_login(alice.user, "django.contrib.auth.backends.ModelBackend")
    assert client.get(path).status_code == 404


def test_a_customer_with_a_flag_set_by_mistake_is_still_a_customer(alice: Person) -> None:
    User.objects.using("support").filter(pk=alice.user.pk).update(is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(alice.user, "django.contrib.auth.backends.ModelBackend")
    assert client.get("/admin/").status_code == 404


def test_the_first_sign_in_leads_through_enrolment_to_the_desk(staff: User) -> None:
    client = Client()
    landed = client.post("/accounts/login/", {"login": staff.email, "password": PASSWORD}, follow=True)
    assert landed.redirect_chain[-1][0].startswith("/accounts/2fa/totp/activate/")
    page = landed.content.decode()
    assert "<svg" in page
    assert "<?xml" not in page
    secret = TwoFactorAdapter().decrypt(client.session[SECRET_SESSION_KEY])
    assert secret in page  # for those who cannot scan
    landed = client.post("/accounts/2fa/totp/activate/", {"code": code_for(secret)}, follow=True)
    assert landed.redirect_chain[-1][0] == "/accounts/2fa/recovery-codes/"
    assert client.get("/admin/").status_code == 200


def test_every_page_of_the_desk_waits_for_enrolment(staff: User) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": staff.email, "password": PASSWORD})
    for path in ("/admin/", "/admin/tenancy/user/", "/admin/usage/ledgerentry/sums/", "/admin/nowhere/"):
        assert where(client.get(path)) == "/accounts/2fa/totp/activate/"


def test_a_wrong_code_does_not_enrol(staff: User) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": staff.email, "password": PASSWORD}, follow=True)
    page = client.post("/accounts/2fa/totp/activate/", {"code": "000000"})
    assert page.status_code == 200
    assert not Authenticator.objects.filter(user=staff).exists()


def test_the_second_sign_in_asks_for_a_code(staff: User) -> None:
    secret = enrol(staff)
    client = Client()
    response = client.post("/accounts/login/", {"login": staff.email, "password": PASSWORD})
    assert where(response) == "/accounts/2fa/authenticate/"
    assert where(client.get("/admin/")) == "/accounts/login/"
    client.post("/accounts/2fa/authenticate/", {"code": code_for(secret)})
    assert client.get("/admin/").status_code == 200


def test_a_recovery_code_signs_in_once(staff: User) -> None:
    enrol(staff)
    codes = Authenticator.objects.get(user=staff, type="recovery_codes").wrap().get_unused_codes()
    for expected in (200, 302):
        client = Client()
        client.post("/accounts/login/", {"login": staff.email, "password": PASSWORD})
        client.post("/accounts/2fa/authenticate/", {"code": codes[0]})
        assert client.get("/admin/").status_code == expected


def test_a_session_from_before_enrolment_has_not_proven_the_factor(staff: User) -> None:
    early = Client()
    early.post("/accounts/login/", {"login": staff.email, "password": PASSWORD})
    secret = enrol(staff)
    assert where(early.get("/admin/")) == "/accounts/2fa/reauthenticate/"
    early.post("/accounts/2fa/reauthenticate/", {"code": code_for(secret), "next": "/admin/"})
    assert early.get("/admin/").status_code == 200


def test_whoever_takes_the_factor_away_enrols_again(staff: User) -> None:
    client = sign_in(staff)
    assert client.get("/admin/").status_code == 200
    Authenticator.objects.filter(user=staff).delete()
    assert where(client.get("/admin/")) == "/accounts/2fa/totp/activate/"


def test_deactivating_a_member_of_staff_shuts_the_door_at_once(staff: User) -> None:
    client = sign_in(staff)
    get_user_model().objects.filter(pk=staff.pk).update(is_active=False)
    assert where(client.get("/admin/")) == "/accounts/login/"


def test_signing_out_takes_a_form(staff: User) -> None:
    client = sign_in(staff)
    assert where(client.get("/admin/logout/")) == "/accounts/logout/"
    assert client.get("/admin/").status_code == 200
    client.post("/admin/logout/")
    assert where(client.get("/admin/")) == "/accounts/login/"


def test_secrets_are_sealed_in_the_database(staff: User) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": staff.email, "password": PASSWORD}, follow=True)
    waiting = client.session[SECRET_SESSION_KEY]
    secret = TwoFactorAdapter().decrypt(waiting)
    assert secret not in waiting
    client.post("/accounts/2fa/totp/activate/", {"code": code_for(secret)})
    kept = {each.type: each.data for each in Authenticator.objects.filter(user=staff)}
    assert TwoFactorAdapter().decrypt(kept["totp"]["secret"]) == secret
    assert secret not in str(kept)
    assert len(TwoFactorAdapter().decrypt(kept["recovery_codes"]["seed"])) == 80
