"""What a script changes: documents, wrap-ups, settings, tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from brain import actions as brain
from memberintel.accounts import actions
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from tests.api.calls import bearer, browser, made_token, problem, send
from tests.api.conftest import Wrap
from tests.conftest import Person

SOUL = "/api/v1/documents/soul/"


@pytest.fixture
def script(alice: Person) -> Client:
    """Alice's script, which may do everything."""
    return bearer(made_token(alice, "read", "chat", "brain", "wrapups", "account").secret)


# --- documents -------------------------------------------------------------------------------------------


def test_a_document_is_written_and_its_versions_stay(script: Client) -> None:
    assert script.get(SOUL).json()["version"] == 0
    for version in range(3):
        given = {"text": f"Text {version}", "base_version": version, "reason": "because"}
        saved = send(script, "PUT", SOUL, given).json()
        assert (saved["version"], saved["text"], saved["updated_by"]) == (
            version + 1,
            f"Text {version}",
            "customer",
        )
    page = script.get(f"{SOUL}versions/?limit=2").json()
    assert [item["version"] for item in page["items"]] == [3, 2]
    assert page["items"][0]["reason"] == "because"
    last = script.get(page["next"]).json()
    assert [item["version"] for item in last["items"]] == [1]
    assert last["next"] is None
    both = script.get("/api/v1/documents/").json()["items"]
    assert [(item["kind"], item["version"]) for item in both] == [("soul", 3), ("bible", 0)]


def test_a_stale_edit_is_told_what_stands_now(script: Client) -> None:
    send(script, "PUT", SOUL, {"text": "from elsewhere", "base_version": 0})
    response = send(script, "PUT", SOUL, {"text": "mine", "base_version": 0})
    assert response.status_code == 409
    told = problem(response)
    assert told["type"] == "/problems/stale-document"
    assert (told["document"]["version"], told["document"]["text"]) == (1, "from elsewhere")
    merged = {"text": "both", "base_version": told["document"]["version"]}
    assert send(script, "PUT", SOUL, merged).status_code == 200


def test_a_kind_nobody_knows_is_not_there(script: Client) -> None:
    for path in ("/api/v1/documents/diary/", "/api/v1/documents/diary/versions/"):
        assert script.get(path).status_code == 404
    assert send(script, "PUT", "/api/v1/documents/diary/", {"text": "", "base_version": 0}).status_code == 404


def test_a_damaged_document_says_so_and_is_not_written_over(alice: Person, script: Client) -> None:
    with scope(alice.scope):
        brain.save_document(kind="soul", body="Be direct.", base_version=0, by="customer", reason="")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE documents SET text = set_byte(text, 20, get_byte(text, 20) # 255)")
    both = script.get("/api/v1/documents/").json()["items"]
    assert [item["readable"] for item in both] == [False, True]
    response = send(script, "PUT", SOUL, {"text": "new", "base_version": 1})
    assert response.status_code == 503
    assert "cannot be opened" in problem(response)["title"].lower() + problem(response)["type"].replace(
        "-", " "
    )


# --- wrap-ups --------------------------------------------------------------------------------------------


def test_a_wrap_up_is_read_edited_and_deleted(alice: Person, script: Client, wrapped: Wrap) -> None:
    session = wrapped(alice)
    (told,) = script.get("/api/v1/wrap-ups/").json()["items"]
    assert (told["session"], told["summary"][:9]) == (str(session), "They plan")
    path = f"/api/v1/wrap-ups/{told['id']}/"
    kept = told["decisions"][0]
    given = {
        "summary": "<b>Mine</b>",
        "decisions": [{"id": kept["id"], "text": "Run it in April"}],
        "open_items": [{"text": "Ask Eve"}],
        "new_context": [],
        "next_session_note": told["next_session_note"],
    }
    edited = send(script, "PUT", path, given).json()
    assert (edited["summary"], edited["decisions"][0]["id"]) == ("<b>Mine</b>", kept["id"])
    assert edited["decisions"][0]["messages"] == kept["messages"]
    assert [item["text"] for item in edited["open_items"]] == ["Ask Eve"]
    assert edited["edited_at"]
    assert script.get(path).json() == edited
    assert script.delete(path).status_code == 204
    assert script.get(path).status_code == script.delete(path).status_code == 404
    assert script.get(f"/api/v1/sessions/{session}/wrap-up/").json() == {"state": "deleted", "wrap_up": None}


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"summary": " "}, 400, "summary"),
        ({"summary": "word " * 1001}, 413, "1,000"),
        ({"decisions": [{"text": "a", "extra": 1}]}, 400, "decisions.0.extra"),
        ({"decisions": [{"text": 5}]}, 400, "decisions.0.text"),
        ({"decisions": "all"}, 400, "decisions"),
        ({"decisions": [{"text": "a"}] * 201}, 400, "decisions"),
    ],
)
def test_an_edit_that_does_not_fit_changes_nothing(
    change: dict[str, Any], status: int, word: str, alice: Person, script: Client, wrapped: Wrap
) -> None:
    wrapped(alice)
    (told,) = script.get("/api/v1/wrap-ups/").json()["items"]
    names = ("summary", "decisions", "open_items", "new_context", "next_session_note")
    given: dict[str, Any] = {name: told[name] for name in names}
    for name in names[1:4]:
        given[name] = [{"id": item["id"], "text": item["text"]} for item in given[name]]
    path = f"/api/v1/wrap-ups/{told['id']}/"
    response = send(script, "PUT", path, given | change)
    assert response.status_code == status
    assert word in problem(response)["detail"]
    assert script.get(path).json() == told


# --- settings --------------------------------------------------------------------------------------------


def test_settings_change_one_at_a_time(alice: Person, script: Client) -> None:
    first = send(
        script, "PATCH", "/api/v1/profile/", {"display_name": "Alice", "time_zone": "Europe/Berlin"}
    ).json()
    second = send(script, "PATCH", "/api/v1/profile/", {"language": "de"}).json()
    assert first | {"language": "de"} == second == script.get("/api/v1/profile/").json()
    assert second["email"] == alice.user.email
    assert second["plan"] == {"key": "pro", "name": "Pro"}
    assert second["owner"] is True


@pytest.mark.parametrize(
    "given",
    [{"time_zone": "Mars/Olympus"}, {"language": "xx"}, {"display_name": "x" * 81}, {"email": "a@b.c"}],
)
def test_settings_that_do_not_fit(given: dict[str, str], script: Client) -> None:
    response = send(script, "PATCH", "/api/v1/profile/", given)
    assert response.status_code == 400
    assert [fault["field"] for fault in problem(response)["errors"]] == list(given)


# --- tokens ----------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_works_and_is_revoked(alice: Person) -> None:
    client = browser(alice)
    given = {"name": "My script", "scopes": ["chat", "read", "read"]}
    response = send(client, "POST", "/api/v1/tokens/", given)
    assert response.status_code == 201
    made = response.json()
    assert (made["name"], made["scopes"], made["expires_at"]) == ("My script", ["read", "chat"], None)
    assert made["token"].startswith(made["prefix"])
    (told,) = client.get("/api/v1/tokens/").json()["items"]
    assert "token" not in told
    assert told == {name: value for name, value in made.items() if name != "token"}
    script = bearer(made["token"])
    assert script.get("/api/v1/sessions/").status_code == 200
    path = f"/api/v1/tokens/{made['id']}/"
    assert client.get(path).json()["last_used_at"] is not None
    assert client.delete(path).status_code == 204
    assert script.get("/api/v1/sessions/").status_code == 401
    assert client.get(path).status_code == client.delete(path).status_code == 404
    assert client.get("/api/v1/tokens/").json() == {"items": []}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes.0"),
        ({"scopes": "read"}, "scopes"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "tomorrow"}, "expires_at"),
    ],
)
def test_tokens_that_do_not_fit(change: dict[str, Any], field: str, alice: Person) -> None:
    given = {"name": "script", "scopes": ["read"], **change}
    response = send(browser(alice), "POST", "/api/v1/tokens/", given)
    assert response.status_code == 400
    assert [fault["field"] for fault in problem(response)["errors"]] == [field]


def test_a_token_that_expires_works_until_then(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    until = clock.now() + timedelta(hours=1)
    script = bearer(made_token(alice, "read", expires_at=until).secret)
    assert script.get("/api/v1/profile/").status_code == 200
    monkeypatch.setattr(clock, "now", lambda: until)
    assert script.get("/api/v1/profile/").status_code == 401


def test_nobody_has_tokens_without_end(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "TOKENS_AT_MOST", 1)
    made_token(alice, "read")
    response = send(browser(alice), "POST", "/api/v1/tokens/", {"name": "one more", "scopes": ["read"]})
    assert (response.status_code, problem(response)["type"]) == (409, "/problems/too-many-tokens")
