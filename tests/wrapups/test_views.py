from __future__ import annotations

import html
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import connection

from memberintel.tenancy.context import scope
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.wrapups.stage import ADVICE, PLAN, job_of, run, talked
from wrapups import makers, queries
from wrapups.queries import WrapUp


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


type Wrapped = Callable[[Person], WrapUp]


@pytest.fixture
def wrapped(login: Callable[[str], AbstractContextManager[None]]) -> Wrapped:
    """Gives a person a session with its wrap-up, written as the worker writes it."""

    def make(person: Person) -> WrapUp:
        session = talked(person.scope, PLAN, ADVICE)
        with login("worker"):
            run(makers.do(job_of(person.scope, session).id, person.scope))
        with scope(person.scope):
            found = queries.wrap_up_of(session)
        assert found is not None
        return found

    return make


def fields(page: str) -> dict[str, Any]:
    """The edit form as a browser would send it untouched."""
    boxes = re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>([^<]*)</textarea>', page)
    given: dict[str, list[str]] = {}
    for name, text in boxes:
        given.setdefault(name, []).append(html.unescape(text))
    return given


def test_a_wrap_up_is_listed_and_read_with_the_session_it_came_from(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    assert found.summary.split(".")[0] in client.get("/wrap-ups/").content.decode()
    page = client.get(f"/wrap-ups/{found.id}/").content.decode()
    assert f"/sessions/{found.session_id}/" in page
    response = client.get(f"/sessions/{found.session_id}/wrap-up/")
    assert response["Location"] == f"/wrap-ups/{found.id}/"


def test_saving_untouched_changes_no_word_and_keeps_the_messages(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    address = f"/wrap-ups/{found.id}/edit/"
    assert client.post(address, fields(client.get(address).content.decode())).status_code == 302
    with scope(alice.scope):
        after = queries.get_wrap_up(found.id)
    assert after is not None
    assert (after.summary, after.decisions, after.open_items, after.new_context, after.next_session_note) == (
        *(found.summary, found.decisions, found.open_items, found.new_context, found.next_session_note),
    )
    assert after.edited_at is not None


def test_an_edit_drops_adds_and_changes_and_is_shown_as_text(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    address = f"/wrap-ups/{found.id}/edit/"
    given = fields(client.get(address).content.decode())
    given["summary"] = ["Mine: <script>alert(1)</script>"]
    for name in [name for name in given if name.startswith("decisions:")]:
        given[name] = [""]
    given["decisions:new"] = ["Added by me", ""]
    assert client.post(address, given).status_code == 302
    page = client.get(f"/wrap-ups/{found.id}/").content.decode()
    assert "Mine: &lt;script&gt;alert(1)&lt;/script&gt;" in page
    with scope(alice.scope):
        after = queries.get_wrap_up(found.id)
    assert after is not None
    assert [(item.text, item.messages) for item in after.decisions] == [("Added by me", ())]


def test_a_refused_edit_brings_everything_back(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    given = {"summary": "", "note": "the note I typed", "decisions:new": ["typed with care", ""]}
    response = client.post(f"/wrap-ups/{found.id}/edit/", given)
    page = response.content.decode()
    assert response.status_code == 400
    assert "needs a summary" in page
    assert "typed with care" in page
    assert "the note I typed" in page
    response = client.post(f"/wrap-ups/{found.id}/edit/", {"summary": "word " * 2000})
    assert "at most 1,000 fit" in response.content.decode()


def test_deleting_asks_once_and_is_for_good(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    address = f"/wrap-ups/{found.id}/delete/"
    assert "Delete for good" in client.get(address).content.decode()
    assert client.post(address).status_code == 302
    assert client.get(f"/wrap-ups/{found.id}/").status_code == 404
    assert client.post(address).status_code == 404
    page = client.get(f"/sessions/{found.session_id}/wrap-up/").content.decode()
    assert "You deleted these notes" in page


def test_a_session_without_a_wrap_up_says_why(alice: Person) -> None:
    trivial, owed = talked(alice.scope, "Hi"), talked(alice.scope, PLAN)
    client = signed_in(alice.user)
    assert "too little in this conversation" in client.get(f"/sessions/{trivial}/wrap-up/").content.decode()
    page = client.get(f"/sessions/{owed}/wrap-up/").content.decode()
    assert "I am writing my notes" in page
    assert "refresh.js" in page
    assert "I am writing my notes" in client.get("/wrap-ups/").content.decode()


def test_another_persons_wrap_up_is_not_there(wrapped: Wrapped, alice: Person, bob: Person) -> None:
    found = wrapped(alice)
    client = signed_in(bob.user)
    nobodys = client.get(f"/wrap-ups/{uuid4()}/")
    paths = [f"/wrap-ups/{found.id}/{what}" for what in ("", "edit/", "delete/")]
    paths.append(f"/sessions/{found.session_id}/wrap-up/")
    for path in paths:
        response = client.get(path)
        assert (response.status_code, response.content) == (404, nobodys.content)
    for path in paths[1:3]:
        assert client.post(path, {"summary": "x"}).status_code == 404
    with scope(alice.scope):
        assert queries.get_wrap_up(found.id) == found


def test_on_free_every_page_of_it_says_what_pro_is_and_nothing_is_changed(
    wrapped: Wrapped, charlie: Person
) -> None:
    found = wrapped(charlie)
    client = signed_in(charlie.user)
    for path in ("/wrap-ups/", f"/wrap-ups/{found.id}/", f"/sessions/{found.session_id}/wrap-up/"):
        page = client.get(path).content.decode()
        assert "This page is part of Pro" in page
        assert found.summary[:40] not in page
    assert client.post(f"/wrap-ups/{found.id}/delete/").status_code == 403
    assert client.post(f"/wrap-ups/{found.id}/edit/", {"summary": "x"}).status_code == 403
    with scope(charlie.scope):
        assert queries.get_wrap_up(found.id) == found


def test_a_damaged_wrap_up_leaves_the_rest_of_the_list_and_is_not_written_over(
    wrapped: Wrapped, alice: Person
) -> None:
    damaged, whole = wrapped(alice), wrapped(alice)
    _damage(alice, damaged.id)
    client = signed_in(alice.user)
    page = client.get("/wrap-ups/").content.decode()
    assert "cannot be opened" in page
    assert f"/wrap-ups/{whole.id}/" in page
    assert "cannot be opened" in client.get(f"/wrap-ups/{damaged.id}/").content.decode()
    assert client.post(f"/wrap-ups/{damaged.id}/edit/", {"summary": "x"}).status_code == 302
    with scope(alice.scope):
        after = queries.get_wrap_up(damaged.id)
    assert after is not None
    assert not after.readable


def _damage(person: Person, wrap_up: UUID) -> None:
    with scope(person.scope), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE session_logs SET summary = set_byte(summary, 20, get_byte(summary, 20) # 1) WHERE id = %s",
            [wrap_up],
        )


@pytest.mark.parametrize(
    "cursor", ["before_id=00000000-0000-7000-8000-000000000001", "before=2023-01-01T00:00:00Z"]
)
def test_half_a_cursor_is_a_400(alice: Person, cursor: str) -> None:
    assert signed_in(alice.user).get(f"/wrap-ups/?{cursor}").status_code == 400
