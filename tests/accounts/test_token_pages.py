"""The page of personal tokens."""

from __future__ import annotations

import re

import pytest
from django.conf import LazySettings

from memberintel.accounts import actions, queries
from memberintel.tenancy.context import scope
from tests.api.calls import bearer, browser, made_token
from tests.conftest import Person


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def test_a_token_is_shown_once_works_and_is_revoked(alice: Person) -> None:
    client = browser(alice)
    page = client.post("/settings/tokens/", {"name": "<b>report</b>", "scopes": ["read"], "days": "30"})
    assert page.status_code == 201
    found = re.search(r"mi_[A-Za-z0-9_-]{43}", page.content.decode())
    assert found is not None
    secret = found.group()
    assert "&lt;b&gt;report" in page.content.decode()
    assert secret not in client.get("/settings/tokens/").content.decode()
    assert bearer(secret).get("/api/v1/profile/").status_code == 200
    with scope(alice.scope):
        (token,) = queries.tokens()
    assert client.post(f"/settings/tokens/{token.id}/revoke/").status_code == 302
    assert bearer(secret).get("/api/v1/profile/").status_code == 401


def test_what_was_typed_is_kept_when_something_is_missing(alice: Person) -> None:
    page = browser(alice).post("/settings/tokens/", {"name": "report", "days": "30"})
    assert page.status_code == 400
    assert 'value="report"' in page.content.decode()


def test_nobody_revokes_somebody_elses_token(alice: Person, bob: Person) -> None:
    browser(alice).post("/settings/tokens/", {"name": "mine", "scopes": ["read"], "days": "0"})
    with scope(alice.scope):
        (token,) = queries.tokens()
    assert browser(bob).post(f"/settings/tokens/{token.id}/revoke/").status_code == 404
    with scope(alice.scope):
        assert len(queries.tokens()) == 1


def test_signing_out_everywhere_and_a_password_reset_revoke_all_tokens(alice: Person, bob: Person) -> None:
    theirs = made_token(bob, "read")
    for end in (actions.sign_out_everywhere, actions.after_password_reset):
        token = made_token(alice, "read")
        assert bearer(token.secret).get("/api/v1/profile/").status_code == 200
        end(alice.user)
        assert bearer(token.secret).get("/api/v1/profile/").status_code == 401
    assert bearer(theirs.secret).get("/api/v1/profile/").status_code == 200


def test_pages_of_a_customer_are_kept_in_no_cache(alice: Person) -> None:
    client = browser(alice)
    for path in ("/chat/", "/sessions/", "/wrap-ups/", "/brain/", "/settings/"):
        assert client.get(path)["Cache-Control"] == "no-store", path
