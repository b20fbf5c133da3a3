from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import Client

from tests.accounts.test_sign_up import PASSWORD, sign_up, signed_in
from tests.conftest import Person


@pytest.fixture(autouse=True)
def folder(settings: LazySettings, tmp_path: Path) -> Path:
    """Where letters go, as on one machine."""
    settings.SECURE_SSL_REDIRECT = False
    settings.EMBEDDED = True
    settings.ALLOWED_HOSTS = ["localhost", "testserver", "evil.example"]
    settings.MAILERS = {
        "default": {
            "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "OPTIONS": {"file_path": str(tmp_path)},
        }
    }
    return tmp_path


def client() -> Client:
    return Client(SERVER_NAME="localhost")


def links(page: str) -> list[str]:
    return re.findall(r'href="http://localhost([^"]+)"', page)


def test_a_forgotten_password_is_replaced_by_the_letter_on_the_page() -> None:
    user = sign_up(client(), f"owner-{uuid4().hex[:8]}@example.com")
    browser = client()
    page = browser.post("/accounts/password/reset/", {"email": user.email}, follow=True).content.decode()
    assert 'href="/mail/"' in page
    page = browser.get("/mail/").content.decode()
    assert user.email in page
    link = links(page)[0]  # the newest letter stands first
    assert "/password/reset/" in link
    form = browser.get(link, follow=True)
    response = browser.post(
        form.request["PATH_INFO"],
        {"password1": "another good password", "password2": "another good password"},
        follow=True,
    )
    assert "Your new password is in force" in response.content.decode()
    for password, entered in ((PASSWORD, 200), ("another good password", 302)):
        response = client().post("/accounts/login/", {"login": user.email, "password": password})
        assert response.status_code == entered
    assert browser.get(link, follow=True).status_code == 200
    assert "used or is too old" in browser.get(link, follow=True).content.decode()


def test_a_new_address_counts_once_it_is_confirmed() -> None:
    browser = client()
    user = sign_up(browser, f"owner-{uuid4().hex[:8]}@example.com")
    new = f"moved-{uuid4().hex[:8]}@example.com"
    asked = browser.post("/accounts/email/", {"email": new, "action_add": ""})
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    browser.post(asked["Location"], {"password": PASSWORD})  # goes on with what was asked for
    page = browser.get("/accounts/email/").content.decode()
    assert f"<b>{new}</b> takes its place as soon as" in page
    user.refresh_from_db()
    assert user.email != new
    link = links(browser.get("/mail/").content.decode())[0]
    assert browser.post(link).status_code == 302
    user.refresh_from_db()
    assert user.email == new


@pytest.mark.parametrize(
    "stranger",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"HTTP_X_FORWARDED_FOR": "192.0.2.7"},
        {"SERVER_NAME": "evil.example"},
    ],
)
def test_letters_are_for_the_machine_itself(stranger: dict[str, str], settings: LazySettings) -> None:
    assert client().get("/mail/").status_code == 200
    assert Client(**({"SERVER_NAME": "localhost"} | stranger)).get("/mail/").status_code == 404
    settings.EMBEDDED = False
    assert client().get("/mail/").status_code == 404


def test_letters_show_html_and_run_none(folder: Path) -> None:
    (folder / "a.log").write_bytes(
        b"Subject: <script>alert(1)</script>\nTo: x@example.com\n\n<img src=x onerror=alert(1)>\n"
        + b"-" * 79
        + b"\n"
    )
    page = client().get("/mail/").content.decode()
    assert "&lt;script&gt;" in page
    assert "<img src=x" not in page
    assert client().get("/mail/")["Cache-Control"] == "no-store"


def test_before_the_first_letter_the_page_says_so() -> None:
    assert "No letters yet" in client().get("/mail/").content.decode()


def test_signing_out_everywhere_leaves_this_device(alice: Person) -> None:
    here, there = signed_in(alice.user), signed_in(alice.user)
    assert (
        "every other device"
        in here.post("/settings/sign-out-everywhere/", follow=True).content.decode().lower()
    )
    assert here.get("/chat/").status_code == 200
    assert there.get("/chat/").status_code == 302
    assert here.get("/settings/sign-out-everywhere/").status_code == 405


def test_a_new_password_ends_other_sign_ins_and_leads_back_to_the_settings() -> None:
    browser = client()
    user = sign_up(browser, f"owner-{uuid4().hex[:8]}@example.com")
    other = signed_in(user)
    given = {
        "oldpassword": PASSWORD,
        "password1": "another good password",
        "password2": "another good password",
    }
    response = browser.post("/accounts/password/change/", given)
    assert response["Location"] == "/settings/"
    assert browser.get("/settings/").status_code == 200
    assert other.get("/settings/").status_code == 302
