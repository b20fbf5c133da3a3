from __future__ import annotations

import html
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memberintel.tenancy.context import scope
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.wrapups.stage import ADVICE, ANSWER, PLAN, job_of, model, run, talked
from wrapups import actions, makers, queries
from wrapups.domain.open_items import STATUSES
from wrapups.models import ClosingJob
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
        page = client.get(path, follow=True).content.decode()
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


# --- open items ------------------------------------------------------------------------------------------


def test_an_open_item_is_ticked_off_and_put_back_on_its_page(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    item = found.open_items[0]
    address = f"/wrap-ups/{found.id}/items/{item.id}/"
    page = client.post(address, {"done": "1"}, follow=True).content.decode()
    assert "Ticked off by you on" in page
    assert "Put back" in page
    page = client.post(address, {"done": "0", "back": "list"}, follow=True).content.decode()
    assert "<h1>Open items</h1>" in page
    assert html.escape(item.text) in page
    assert client.get(address).status_code == 405
    assert client.post(f"/wrap-ups/{found.id}/items/{uuid4()}/", {"done": "1"}).status_code == 404


def test_open_items_are_listed_by_what_became_of_them(wrapped: Wrapped, alice: Person, bob: Person) -> None:
    found = wrapped(alice)
    item = found.open_items[0]
    with scope(alice.scope):
        actions.tick(found.id, UUID(item.id), done=True)
    client = signed_in(alice.user)
    pages = {
        status: client.get(f"/wrap-ups/open-items/?status={status}").content.decode() for status in STATUSES
    }
    assert [status for status, page in pages.items() if html.escape(item.text) in page] == ["resolved"]
    assert "Nothing here" in pages["parked"]
    assert client.get("/wrap-ups/open-items/?status=lost").status_code == 400
    assert (
        html.escape(item.text)
        not in signed_in(bob.user).get("/wrap-ups/open-items/?status=resolved").content.decode()
    )


def test_each_item_leads_to_the_message_it_rests_on(wrapped: Wrapped, alice: Person) -> None:
    found = wrapped(alice)
    client = signed_in(alice.user)
    page = client.get(f"/wrap-ups/{found.id}/").content.decode()
    links = re.findall(rf'href="/sessions/{found.session_id}/\?at=(\d+)#e(\d+)"', page)
    assert set(links) == {("2", "2"), ("3", "3")}
    assert 'id="e2"' in client.get(f"/sessions/{found.session_id}/?at=2").content.decode()


# --- the list, narrowed ----------------------------------------------------------------------------------


@pytest.fixture
def many(alice: Person, login: Callable[[str], AbstractContextManager[None]], settings: Any) -> list[UUID]:
    """Sessions of one day after the other from 1 March 2026, each with a wrap-up that has a word of its own."""
    made = []
    for number, word in enumerate(("Anchor", "Banner", "Castle", "Banners")):
        session = talked(alice.scope, PLAN, at=datetime(2026, 3, 1 + number, 9, 0, tzinfo=UTC))
        left = [{"text": f"Paint the {word}", "messages": [1]}]
        answer = {**ANSWER, "summary": f"They spoke of the {word}.", "open_items": left}
        with model(settings, f"many-{uuid4().hex}", {"json": answer}), login("worker"):
            run(makers.do(job_of(alice.scope, session).id, alice.scope))
        made.append(session)
    return made


def days(page: str) -> list[str]:
    return re.findall(r'<a class="title"[^>]*><time[^>]*>\w+, (\d+) March 2026', page)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["4", "3", "2", "1"]),
        ("q=banner", ["4", "2"]),
        ("q=spoke+ANCHOR", ["1"]),
        ("q=anner", []),
        ("q=nowhere", []),
        ("since=2026-03-03", ["4", "3"]),
        ("since=2026-03-02&until=2026-03-03", ["3", "2"]),
        ("open=1", ["4", "3", "1"]),
        ("open=1&q=banner", ["4"]),
    ],
)
def test_the_list_is_narrowed(alice: Person, many: list[UUID], query: str, shown: list[str]) -> None:
    with scope(alice.scope):
        banner = queries.wrap_up_of(many[1])
        assert banner is not None
        actions.tick(banner.id, UUID(banner.open_items[0].id), done=True)
    assert days(signed_in(alice.user).get(f"/wrap-ups/?{query}").content.decode()) == shown


@pytest.mark.parametrize(
    "query", ["since=yesterday", "until=2026-13-01", "state=lost", "since=0000-00-00", "before=2026"]
)
def test_a_filter_that_is_none_is_refused(alice: Person, query: str) -> None:
    assert signed_in(alice.user).get(f"/wrap-ups/?{query}").status_code == 400


def test_pages_go_on_within_a_search(
    alice: Person, many: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PAGE", 2)
    monkeypatch.setattr("wrapups.search._AT_ONCE", 1)
    client = signed_in(alice.user)
    first = client.get("/wrap-ups/?q=spoke").content.decode()
    assert days(first) == ["4", "3"]
    older = html.unescape(re.findall(r'href="\?([^"]*before[^"]*)"', first)[0])
    assert days(client.get(f"/wrap-ups/?{older}").content.decode()) == ["2", "1"]


def test_what_was_edited_is_found_by_its_new_words(alice: Person, many: list[UUID]) -> None:
    with scope(alice.scope):
        found = queries.wrap_up_of(many[0])
        assert found is not None
        actions.edit(found.id, actions.Edit("A zeppelin.", [], [], [], "Ask."), by=alice.user.id)
        assert [each.id for each in queries.list_wrap_ups(q="zeppelin")] == [found.id]
        assert [each.id for each in queries.list_wrap_ups(q="anchor")] == []


def test_a_damaged_one_is_passed_over(alice: Person, many: list[UUID]) -> None:
    with scope(alice.scope), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE session_logs SET summary = %s WHERE session_id = %s", [b"\x01damaged", many[0]]
        )
    with scope(alice.scope):
        assert len(queries.list_wrap_ups(q="spoke")) == 3
        assert len(queries.list_wrap_ups()) == 4


def test_list_pages_ask_few_questions(alice: Person, many: list[UUID]) -> None:
    client = signed_in(alice.user)
    for path in (
        "/wrap-ups/",
        "/wrap-ups/?q=spoke&open=1",
        "/wrap-ups/?state=failed",
        "/wrap-ups/open-items/",
    ):
        with CaptureQueriesContext(connection) as asked:
            assert client.get(path).status_code == 200
        statements = [
            each["sql"] for each in asked if not each["sql"].startswith(("BEGIN", "COMMIT", "SAVEPOINT"))
        ]
        asking = [sql for sql in statements if "set_config" not in sql]
        assert len(asking) <= 12, asking


# --- why there are none ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("unfunded", "wrap-ups are used up"),
        ("failed", "once a day"),
        ("off_record", "off the record"),
        ("expired", "older than your account keeps"),
    ],
)
def test_each_state_says_why(alice: Person, charlie: Person, state: str, words: str) -> None:
    for who in (alice, charlie):  # also where wrap-ups cannot be read
        session = talked(who.scope, PLAN)
        with scope(who.scope):
            ClosingJob.objects.filter(session_id=session).update(state=state)
        client = signed_in(who.user)
        page = client.get(f"/sessions/{session}/wrap-up/").content.decode()
        assert words in page
        assert ("the next ones come on 1 " in page) == (state == "unfunded")
    listed = signed_in(alice.user).get(f"/wrap-ups/?state={state}").content.decode()
    assert listed.count('<a class="title"') == 1
    assert words in listed


def test_what_failed_for_good_does_not_promise_another_try(alice: Person) -> None:
    session = talked(alice.scope, PLAN)
    with scope(alice.scope):
        ClosingJob.objects.filter(session_id=session).update(state="failed", daily_tries=5)
    client = signed_in(alice.user)
    assert "also on later days" in client.get(f"/sessions/{session}/wrap-up/").content.decode()
    assert "I try again by myself" not in client.get("/wrap-ups/").content.decode()
