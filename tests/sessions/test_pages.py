"""Long conversations page by page, the archive, going on, off the record, and what was forgotten: pages and API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.llm.backends import scripted
from memberintel.tenancy.context import scope
from sessions import actions, log, oversight, queries, turn
from sessions.domain import events as kinds
from sessions.log import Turn
from sessions.models import ForgotReport, Session
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.sessions.conftest import open_for, say
from tests.sessions.test_api import client_of
from tests.sessions.test_erasure import finished
from tests.waiting import until_true


@pytest.fixture(autouse=True)
async def _drained(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    scripted.script("pages-here", [{"steps": [{"text": "Go on."}]}])
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:pages-here",)}
    settings.SECURE_SSL_REDIRECT = False
    monkeypatch.setattr(queries, "EVENTS", 20)  # so that a log of a few dozen turns is a long one
    yield
    await turn.drain()


def long(person: Person, turns: int) -> UUID:
    """An open session with that many turns of two events; its last event is number 1 + 2 * turns."""
    with scope(person.scope):
        session = actions.open_session(close_previous=True)
        for number in range(turns):
            one = Turn(uuid7(), 1, "test")
            log.append(session, kinds.user_message(text=f"question {number}.", tokens=2), turn=one)
            draft = kinds.assistant_turn(text=f"answer {number}.", tokens=2, model="m", provider="p")
            log.append(session, draft, turn=one)
    return session


def said(page: str) -> list[int]:
    """The numbers of the questions on a page, each of which must have its answer there."""
    numbers = [int(found) for found in re.findall(r"question (\d+)\.", page)]
    assert numbers == [int(found) for found in re.findall(r"answer (\d+)\.", page)]
    return numbers


def link(page: str, words: str) -> str | None:
    found = re.search(rf'href="(\?[^"]+)">{words}</a>', page)
    return found[1].replace("&amp;", "&") if found else None


def test_a_long_conversation_is_read_in_both_directions(alice: Person) -> None:
    session = long(alice, 25)
    client = signed_in(alice.user)
    address = f"/sessions/{session}/"
    seen, there = [], ""
    page = client.get(address).content.decode()
    assert "Entries 1 to " in page
    while True:
        seen += said(page)
        following = link(page, "Later")
        if following is None:
            break
        there = following
        page = client.get(address + there).content.decode()
    assert seen == list(range(25))
    back = said(page)
    while previous := link(page, "Earlier"):
        page = client.get(address + previous).content.decode()
        back = said(page) + back
    assert back == list(range(25))
    assert said(client.get(address + "?at=51").content.decode())[-1] == 24


def test_a_link_to_a_place_opens_the_page_that_has_it(alice: Person) -> None:
    session = long(alice, 25)
    client = signed_in(alice.user)
    for seq in (1, 2, 25, 26, 50, 51):
        assert f'id="e{seq}"' in client.get(f"/sessions/{session}/?at={seq}").content.decode()
    for bad in ("at=x", "before=-1", "after=" + "9" * 30, "at=²"):
        assert client.get(f"/sessions/{session}/?{bad}").status_code == 400
    assert client.get(f"/sessions/{session}/?at=999999").status_code == 200


def test_the_chat_shows_the_end_and_fetches_what_came_before(alice: Person) -> None:
    session = long(alice, 25)
    client = signed_in(alice.user)
    page = client.get("/chat/").content.decode()
    seen = said(page)
    assert seen[-1] == 24
    assert "question 0." not in page
    while more := re.search(r'data-earlier="([^"]+)"', page):
        page = client.get(more[1]).content.decode()
        seen = said(page) + seen
    assert seen == list(range(25))
    assert client.get(f"/sessions/{session}/earlier/").status_code == 200


def test_no_page_reads_more_of_a_longer_log(alice: Person) -> None:
    """By the rows that come back: the same for many pages as for two."""
    client = signed_in(alice.user)
    counts = []
    for turns in (15, 35):
        session = long(alice, turns)
        middle = turns
        asked = ("/chat/", f"/sessions/{session}/", f"/sessions/{session}/?at={middle}")
        for path in asked:
            client.get(path)
        with CaptureQueriesContext(connection) as run:
            for path in asked:
                client.get(path)
        counts.append(len(run))
        with scope(alice.scope):
            row = Session.objects.get(id=session)
            for part in (queries.newest_part(row), queries.transcript_part(row, at=middle)):
                assert part.span.last - part.span.first <= queries.EVENTS + 2
    assert counts[0] == counts[1]


def test_a_turn_is_read_from_its_message_to_the_next(alice: Person) -> None:
    session = long(alice, 3)
    with scope(alice.scope):
        [first, *_] = [event for event in log.load(session) if event.kind == kinds.USER_MESSAGE]
        assert first.turn is not None
        assert queries.message_seq(session, first.turn) == 2
        row = Session.objects.get(id=session)
        assert [item.seq for item in queries.turn_items(row, first.turn)] == [2, 3]


async def test_the_api_gives_a_log_in_parts(alice: Person) -> None:
    session = await sync_to_async(long)(alice, 30)
    client = await client_of(alice)
    address: str | None = f"/api/v1/sessions/{session}/?limit=12"
    seqs: list[int] = []
    while address:
        told = (await client.get(address)).json()
        seqs += [item["seq"] for item in told["items"]]
        address = told["next"]
    assert seqs == list(range(1, 62))
    assert told["previous"]
    back = (await client.get(told["previous"])).json()
    assert back["items"][-1]["seq"] == told["items"][0]["seq"] - 1
    at = (await client.get(f"/api/v1/sessions/{session}/?at=40&limit=6")).json()
    assert 40 in [item["seq"] for item in at["items"]]
    for bad in ("before=0", "at=x", "before=1&after=2", "limit=501", "seq=1"):
        assert (await client.get(f"/api/v1/sessions/{session}/?{bad}")).status_code == 400


# --- the list, the archive ---------------------------------------------------------------------------------


def test_an_archived_session_is_listed_apart_and_takes_no_message(alice: Person, bob: Person) -> None:
    session = finished(alice)
    client = signed_in(alice.user)
    title = f'href="/sessions/{session}/"'
    answer = client.post(f"/sessions/{session}/archive/", {"archived": "yes"}, follow=True)
    assert "Take out of the archive" in answer.content.decode()
    assert title not in client.get("/sessions/").content.decode()
    assert title in client.get("/sessions/?show=archived").content.decode()
    with pytest.raises(actions.Conflict) as refused:
        say(alice, "Hello?", "key-archived-1", session=session)
    assert refused.value.code == "session_archived"
    assert "Take out of the archive" in client.get(f"/sessions/{session}/continue/").content.decode()
    client.post(f"/sessions/{session}/archive/", {"archived": "no"})
    assert title in client.get("/sessions/?show=closed").content.decode()
    stranger = signed_in(bob.user)
    assert stranger.post(f"/sessions/{session}/archive/", {"archived": "yes"}).status_code == 404


def test_an_open_session_is_not_archived(alice: Person) -> None:
    session = open_for(alice)
    client = signed_in(alice.user)
    answer = client.post(f"/sessions/{session}/archive/", {"archived": "yes"}, follow=True)
    assert "End it, then archive it" in answer.content.decode()
    with scope(alice.scope):
        assert Session.objects.get(id=session).archived_at is None


def test_the_list_is_chosen_by_state_and_by_day(alice: Person) -> None:
    old, over = finished(alice), finished(alice)
    open_ = open_for(alice)
    then = clock.now() - timedelta(days=40)
    with scope(alice.scope):
        Session.objects.filter(id=old).update(last_activity_at=then)
    client = signed_in(alice.user)

    def shown(choice: str) -> set[str]:
        page = client.get(f"/sessions/?{choice}").content.decode()
        return set(re.findall(r'class="title"\s+href="([^"]+)"', page))

    day = (clock.now() - timedelta(days=10)).date()
    places = {name: f"/sessions/{each}/" for name, each in (("old", old), ("over", over))}
    assert shown("") == {"/chat/", *places.values()}
    assert shown("show=open") == {"/chat/"}
    assert shown("show=closed") == set(places.values())
    assert shown(f"until={day}") == {places["old"]}
    assert shown(f"since={day}&show=closed") == {places["over"]}
    assert shown(f"since={then.date()}&until={then.date()}") == {places["old"]}
    assert shown("show=archived") == set()
    assert open_
    for bad in ("show=all", "since=tomorrow", "until=2026-02-30", "since=0001-01-01", "until=9999-12-31"):
        assert client.get(f"/sessions/?{bad}").status_code == 400, bad


def test_the_choice_is_kept_while_paging(alice: Person) -> None:
    for _ in range(queries.PAGE + 3):
        open_for(alice)
    client = signed_in(alice.user)
    page = client.get("/sessions/?show=closed").content.decode()
    older = re.search(r'href="(\?[^"]*before=[^"]+)"', page)
    assert older is not None
    assert "show=closed" in older[1]
    page = client.get("/sessions/" + older[1].replace("&amp;", "&")).content.decode()
    assert len(re.findall(r'class="title"', page)) == 2
    assert 'href="/sessions/?show=closed"' in page


# --- going on ----------------------------------------------------------------------------------------------


async def test_a_closed_conversation_is_continued_with_forms_alone(alice: Person, bob: Person) -> None:
    session = await sync_to_async(finished)(alice)
    standing = await sync_to_async(open_for)(alice)
    client = await client_of(alice)
    address = f"/sessions/{session}/continue/"
    page = (await client.get(address)).content.decode()
    assert "is open now and ends first" in page
    key = re.search(r'name="client_key" value="([^"]+)"', page)
    assert key is not None
    empty = await client.post(address, {"text": " ", "client_key": key[1]})
    assert empty.status_code == 400
    assert "There is nothing in this message" in empty.content.decode()
    answer = await client.post(address, {"text": "And the zeppelins?", "client_key": key[1]})
    assert answer["Location"] == "/chat/#end-of-conversation"
    page = (await client.get("/chat/")).content.decode()
    assert "And the zeppelins?" in page
    assert "continues an earlier conversation" in page

    def rows() -> tuple[Session, Session]:
        with scope(alice.scope):
            now = queries.open_session()
            assert now is not None
            return now, Session.objects.get(id=standing)

    now, before = await sync_to_async(rows)()
    assert (now.continues, before.close_reason) == (session, "ended")
    assert (await client.get(f"/sessions/{now.id}/continue/"))["Location"] == "/chat/"
    stranger = await client_of(bob)
    assert (await stranger.get(address)).status_code == 404
    assert (await stranger.post(address, {"text": "x", "client_key": str(uuid4())})).status_code == 404


# --- off the record ----------------------------------------------------------------------------------------


async def test_a_conversation_off_the_record_from_the_page(alice: Person) -> None:
    standing = await sync_to_async(open_for)(alice)
    client = await client_of(alice)
    page = (await client.get("/chat/off-the-record/")).content.decode()
    assert "The conversation that is open now ends first" in page
    assert (await client.post("/chat/off-the-record/"))["Location"] == "/chat/"
    page = (await client.get("/chat/")).content.decode()
    assert "<strong>Off the record.</strong>" in page
    assert "data-off-record" in page
    session = re.search(r'data-session="([^"]+)"', page)
    assert session is not None
    assert session[1] != str(standing)
    form = {"act": "say", "text": "A secret zeppelin", "client_key": str(uuid4()), "session": session[1]}
    assert (await client.post("/chat/act/", form)).status_code == 302

    async def answered() -> str:
        page: str = (await client.get("/chat/")).content.decode()
        return page if 'data-state="complete"' in page else ""

    page = await until_true(answered)
    assert "<strong>Off the record.</strong>" in page
    ended = await client.post("/chat/act/", {"act": "end", "session": session[1]})
    assert "nothing of it is kept" in (await client.get(ended["Location"])).content.decode()
    page = (await client.get(f"/sessions/{session[1]}/")).content.decode()
    assert "Nothing of it was kept" in page
    assert "zeppelin" not in page
    # What is typed on the page that still stands open must not end up where it is kept.
    late = await client.post("/chat/act/", {**form, "text": "More", "client_key": str(uuid4())})
    assert late.status_code == 409
    assert "More</textarea>" in late.content.decode()
    assert "nothing of it is kept" in late.content.decode()


async def test_the_api_opens_one_off_the_record(alice: Person) -> None:
    client = await client_of(alice)
    body = {"off_record": True, "close_previous": True}
    made = await client.post("/api/v1/sessions/", body, content_type="application/json")
    told = (await client.get(f"/api/v1/sessions/{made.json()['session']}/")).json()
    assert told["off_record"] is True
    assert told["items"][0]["off_record"] is True


def test_who_goes_on_after_a_long_silence_stays_off_the_record(alice: Person) -> None:
    with scope(alice.scope):
        session = actions.open_session(close_previous=True, off_record=True)
        later = clock.now() + timedelta(hours=3)
        following = actions.say(text="Still here?", client_key="key-silent-1", session=session, now=later)
        assert following.session != session
        row = Session.objects.get(id=following.session)
        assert (row.off_record, row.title, row.continues) == (True, None, session)
        assert log.load(session) == []


# --- forgotten ---------------------------------------------------------------------------------------------


def test_what_was_forgotten_is_counted_once_a_turn_and_without_a_word(alice: Person, bob: Person) -> None:
    said_ = say(alice, "What about the zeppelins?", "key-forgot-1")
    client: Client = signed_in(alice.user)
    since = clock.now() - timedelta(minutes=1)
    for _ in range(2):
        answer = client.post("/chat/act/", {"act": "forgot", "session": str(said_.session)}, follow=True)
        assert "Noted, without a word" in answer.content.decode()
    with scope(alice.scope):
        [report] = ForgotReport.objects.all()
        assert (report.session_id, report.turn) == (said_.session, said_.turn.id)
        assert oversight.forgotten(since, clock.now() + timedelta(minutes=1)) == 1
        assert oversight.forgotten(since - timedelta(days=2), since) == 0
    stranger = signed_in(bob.user)
    refused: Any = stranger.post("/chat/act/", {"act": "forgot", "session": str(said_.session)})
    assert refused.status_code == 404
