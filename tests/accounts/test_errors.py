"""Errors as a person reads them, on pages and as problem documents."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connections
from django.test import Client, RequestFactory

from memberintel import errors
from memberintel.vault.errors import WrongKey
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def test_what_is_not_there_and_what_is_somebody_elses_look_the_same(alice: Person) -> None:
    client = signed_in(alice.user)
    pages = [client.get(f"/sessions/{uuid4()}/"), client.get("/nothing/at/all/"), client.get("/brain/diary/")]
    assert {page.status_code for page in pages} == {404}
    assert len({page.content for page in pages}) == 1


def test_a_form_from_another_sign_in_says_what_to_do(alice: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user, backend="django.contrib.auth.backends.ModelBackend")
    response = client.post("/settings/", {"display_name": "x"})
    assert response.status_code == 403
    assert b"This page was too old" in response.content


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (OperationalError("gone"), "DATABASE_URL_WEB"),
        (WrongKey("no"), "MEMBERINTEL_KEK"),
    ],
)
def test_a_missing_part_is_named(cause: Exception, words: str) -> None:
    for path in ("/chat/", "/api/v1/messages/"):
        try:
            raise cause
        except type(cause):
            response = errors.server_error(RequestFactory().get(path))
        assert response.status_code == 503
        assert words in response.content.decode()


def test_an_unexpected_error_shows_no_trace(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError("a secret detail")

    monkeypatch.setattr("brain.queries.document", fail)
    client = signed_in(alice.user)
    client.raise_request_exception = False
    response = client.get("/brain/")
    assert response.status_code == 500
    assert b"secret detail" not in response.content


def test_a_database_that_is_away_is_a_page_and_not_a_trace(alice: Person) -> None:
    client = signed_in(alice.user)
    client.raise_request_exception = False
    connection = connections["default"]
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, "HOST": "/nowhere", "PORT": ""}
    try:
        response = client.get("/chat/")
    finally:
        connection.close()
        connection.settings_dict = before
    assert response.status_code == 503
    assert b"The database cannot be reached" in response.content


def test_an_api_address_that_does_not_exist_is_a_problem_document(alice: Person) -> None:
    response = signed_in(alice.user).get("/api/v1/nothing/")
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["status"] == 404


def test_pages_allow_no_inline_script_or_style(alice: Person) -> None:
    client = signed_in(alice.user)
    for path in ("/chat/", "/sessions/", "/brain/", "/brain/soul/", "/wrap-ups/", "/settings/"):
        response = client.get(path)
        page = response.content.decode()
        assert "unsafe" not in response["Content-Security-Policy"]
        assert " style=" not in page
        assert "<style" not in page
        assert "<script>" not in page
        assert " onclick" not in page
