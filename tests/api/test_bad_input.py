"""What bad input gets, on every call: a problem that names what is wrong, and nothing written."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.test import Client

from brain import queries as brain
from memberintel.tenancy.context import scope
from sessions import follow
from tests.api.calls import NOTHING, Call, browser, calls, problem, send
from tests.conftest import Person

CALLS = calls()
WITH_BODY = [call for call in CALLS if call.body is not None]
each_call = pytest.mark.parametrize("call", CALLS, ids=str)
each_with_body = pytest.mark.parametrize("call", WITH_BODY, ids=str)
each_path = pytest.mark.parametrize("call", list({call.name: call for call in CALLS}.values()), ids=str)


@each_with_body
@pytest.mark.parametrize(
    "raw", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"text": NaN}', b"null x", b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_malformed_json(call: Call, raw: bytes, alice: Person) -> None:
    client = browser(alice)
    response = client.generic(call.method, call.path(NOTHING), raw, content_type="application/json")
    assert response.status_code == 400
    assert problem(response)["type"] == "/problems/malformed-json"


@each_with_body
@pytest.mark.parametrize("given", [[], 5, "text", None, True])
def test_a_body_that_is_no_object(call: Call, given: Any, alice: Person) -> None:
    raw = json.dumps(given)
    response = browser(alice).generic(call.method, call.path(NOTHING), raw, content_type="application/json")
    assert response.status_code == 400
    assert [fault["field"] for fault in problem(response)["errors"]] == ["body"]


@each_with_body
def test_a_field_nobody_knows_is_named(call: Call, alice: Person) -> None:
    given = {**call.body, "surprise": 1}
    response = send(browser(alice), call.method, call.path(NOTHING), given)
    assert response.status_code == 400
    assert "surprise" in [fault["field"] for fault in problem(response)["errors"]]


@each_with_body
def test_every_field_of_the_wrong_type_is_named(call: Call, alice: Person) -> None:
    for name, good in call.body.items():
        for wrong in (5.5, {"a": 1}, [[1]], "\x00", None, True):
            if type(wrong) is type(good) or (isinstance(good, str) and isinstance(wrong, str)):
                continue
            given = {**call.body, name: wrong}
            response = send(browser(alice), call.method, call.path(NOTHING), given)
            assert response.status_code == 400, (name, wrong, response.content)
            fields = [fault["field"] for fault in problem(response)["errors"]]
            assert all(field == name or field.startswith(f"{name}.") for field in fields), fields


@each_with_body
def test_another_kind_of_body(call: Call, alice: Person) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml"):
        response = browser(alice).generic(call.method, call.path(NOTHING), "a=1", content_type=kind)
        assert (response.status_code, problem(response)["type"]) == (415, "/problems/unsupported-media-type")


def test_a_form_from_a_page_of_ours(alice: Person) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(alice.user, backend="django.contrib.auth.backends.ModelBackend")
    client.get("/settings/")
    form = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value, "display_name": "x"}
    assert client.post("/api/v1/presence/", form).status_code == 415


@each_with_body
def test_a_body_over_the_cap(call: Call, alice: Person) -> None:
    raw = b'{"text": "' + b"x" * django_settings.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"}'
    response = browser(alice).generic(call.method, call.path(NOTHING), raw, content_type="application/json")
    assert response.status_code == 413
    assert problem(response)["limit"] == django_settings.DATA_UPLOAD_MAX_MEMORY_SIZE


@each_path
def test_other_methods(call: Call, alice: Person) -> None:
    allowed = {other.method for other in CALLS if other.name == call.name}
    for client in (browser(alice), Client()):
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - allowed:
            response = client.generic(method, call.path(NOTHING))
            assert problem(response)["type"] == "/problems/method-not-allowed"
            assert set(response["Allow"].split(", ")) == allowed


@pytest.mark.parametrize(
    "path", ["/api/", "/api/v1/", "/api/v2/sessions/", "/api/v1/sessions/5/", "/api/v1/x"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_addresses_of_nothing(path: str, method: str, alice: Person) -> None:
    for client in (browser(alice), Client()):
        response = client.generic(method, path)
        assert response.status_code == 404
        assert problem(response)["type"] == "/problems/not-found"


@pytest.mark.parametrize("path", ["/api/docs/", "/api/openapi.json"])
def test_what_is_open_to_all_is_to_be_read(path: str) -> None:
    response = Client().post(path)
    assert (response.status_code, response["Allow"]) == (405, "GET")
    problem(response)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("before=2026-07-21T16:05:00Z", "before_id"),
        ("before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=yesterday&before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=2026-07-21T16:05:00&before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=2026-13-45T16:05:00Z&before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=2026-07-21T16:05:00%2B24:00&before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=9999-12-31T23:59:59-23:59&before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=0001-01-01T00:00:00%2B23:59&before_id=0190b5c0-0000-7000-8000-000000000000", "before"),
        ("before=2026-07-21T16:05:00Z&before_id=5x", "before_id"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=many", "limit"),
        ("surprise=1", "surprise"),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/sessions/", "/api/v1/wrap-ups/"])
def test_parameters_are_named(path: str, query: str, field: str, alice: Person) -> None:
    response = browser(alice).get(f"{path}?{query}")
    assert response.status_code == 400
    assert problem(response)["type"] == "/problems/invalid-parameter"
    assert [fault["field"] for fault in problem(response)["errors"]] == [field]


@pytest.mark.parametrize("path", ["/api/v1/sessions/", "/api/v1/wrap-ups/", "/sessions/", "/wrap-ups/"])
def test_an_offset_the_database_does_not_know_is_a_moment_all_the_same(path: str, alice: Person) -> None:
    cursor = "before=2026-07-21T16:05:00%2B23:00&before_id=0190b5c0-0000-7000-8000-000000000000"
    assert browser(alice).get(f"{path}?{cursor}").status_code == 200


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59-23:59"])
def test_a_token_does_not_end_when_no_calendar_does(end: str, alice: Person) -> None:
    given = {"name": "For ever", "scopes": ["read"], "expires_at": end}
    response = send(browser(alice), "POST", "/api/v1/tokens/", given)
    assert [fault["field"] for fault in problem(response)["errors"]] == ["expires_at"]
    assert browser(alice).get("/api/v1/tokens/").json()["items"] == []


def test_where_to_resume_may_be_nonsense(alice: Person) -> None:
    place = follow.Place(uuid4(), uuid4(), 1, 1)
    for last_id in ("", "1-", "x-5", "2-5", "1-²", "1--5", "1-" + "9" * 5000):
        assert follow._number(place, last_id) == 0
    assert follow._number(place, "1-57") == 57


@pytest.mark.parametrize("query", ["attempt=0", "attempt=x", "since=0", "since=99999999999", "other=1"])
def test_parameters_of_a_stream_are_named(query: str, alice: Person, ids: dict[str, Any]) -> None:
    path = f"/api/v1/sessions/{ids['session']}/turns/{ids['turn_id']}/stream/?{query}"
    response = browser(alice).get(path)
    assert response.status_code == 400
    assert problem(response)["errors"][0]["field"] == query.split("=")[0]


@pytest.mark.parametrize("name", ["\x00", "\ud800", "\x07", "\u0085"])
def test_what_no_database_holds_is_taken_out_and_the_rest_kept(name: str, alice: Person) -> None:
    client = browser(alice)
    told = send(client, "PATCH", "/api/v1/profile/", {"display_name": f"Al{name}ice"}).json()
    assert told["display_name"] == "Alice"
    saved = send(client, "PUT", "/api/v1/documents/soul/", {"text": f"Be{name} direct.", "base_version": 0})
    assert saved.json()["text"] == "Be direct."


def test_html_comes_back_as_it_was_sent_and_is_no_page(alice: Person) -> None:
    given = {"text": "<script>alert(1)</script>", "base_version": 0}
    response = send(browser(alice), "PUT", "/api/v1/documents/soul/", given)
    assert response.json()["text"] == given["text"]
    assert response["Content-Type"] == "application/json"
    assert response["X-Content-Type-Options"] == "nosniff"


def test_what_breaks_tells_nothing_of_how(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError("a secret detail")

    monkeypatch.setattr(brain, "document", fail)
    response = browser(alice).get("/api/v1/documents/")
    assert response.status_code == 500
    assert "secret" not in json.dumps(problem(response))


def test_nothing_stays_in_a_cache(alice: Person) -> None:
    assert browser(alice).get("/api/v1/profile/")["Cache-Control"] == "no-store"


def test_refused_documents_are_not_written(alice: Person) -> None:
    response = send(
        browser(alice), "PUT", "/api/v1/documents/soul/", {"text": "x " * 5000, "base_version": 0}
    )
    assert response.status_code == 413
    told = problem(response)
    assert told["tokens"] > told["limit"]
    with scope(alice.scope):
        assert brain.document("soul").version == 0
