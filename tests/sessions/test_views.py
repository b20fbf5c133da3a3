"""The pages of conversations as they are without a script: forms, lists, transcripts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from memberintel.lib.ids import uuid7
from memberintel.llm.backends import scripted
from memberintel.tenancy.context import scope
from sessions import actions, queries, turn
from sessions.domain.transcript import ClosedItem, Item, MessageItem, PromptItem, RecallItem
from sessions.models import Session
from sessions.views import blocks
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.sessions.conftest import open_for, say
from tests.sessions.test_api import client_of
from tests.waiting import until_true

QUESTION = "What would you change about our onboarding, given that members leave in the first month?"


@pytest.fixture(autouse=True)
async def _drained(settings: LazySettings) -> AsyncIterator[None]:
    scripted.script("pages", [{"steps": [{"text": "# Ask\n\nAsk them **why**. <script>x</script>"}]}])
    scripted.script("stalled", [{"steps": [{"text": "I would "}, {"stall": True}]}])
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:pages",)}
    settings.SECURE_SSL_REDIRECT = False
    yield
    await turn.drain()


async def act(client: AsyncClient, **given: object) -> Any:
    return await client.post("/chat/act/", given)


async def page_with(client: AsyncClient, words: str, path: str = "/chat/") -> str:
    page = ""

    async def has_come() -> bool:
        nonlocal page
        page = (await client.get(path)).content.decode()
        return words in page

    await until_true(has_come, saw=lambda: page)
    return page


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}"\s+value="([^"]+)"', page)
    assert found is not None
    return found[1]


async def test_a_conversation_with_forms_alone(alice: Person) -> None:
    client = await client_of(alice)
    page = (await client.get("/chat/")).content.decode()
    key = field(page, "client_key")
    for _ in range(2):  # a second click sends the same key
        response = await act(client, act="say", text=f"{QUESTION} <b>&", client_key=key)
        assert response.status_code == 302
    page = await page_with(client, 'data-state="complete"')
    assert page.count('class="said customer"') == 1
    assert f"{QUESTION} &lt;b&gt;&amp;" in page
    assert "<h3>Ask</h3>" in page
    assert "<strong>why</strong>" in page
    assert "<script>x" not in page
    session = field(page, "session")
    response = await act(client, act="end", session=session)
    assert response["Location"] == f"/chat/?ended={session}"
    page = (await client.get(response["Location"])).content.decode()
    assert "That conversation is closed." in page
    assert f"/sessions/{session}/wrap-up/" in page
    assert "You ended this conversation" in (await client.get(f"/sessions/{session}/")).content.decode()
    assert (await act(client, act="end", session=session)).status_code == 302


async def test_what_was_typed_comes_back_with_the_reason(alice: Person, settings: LazySettings) -> None:
    client = await client_of(alice)
    response = await act(client, act="say", text="  \n ", client_key=str(uuid4()))
    assert response.status_code == 400
    assert "There is nothing in this message" in response.content.decode()
    settings.MESSAGE_LIMIT_CHARACTERS = 20
    response = await act(client, act="say", text="far too long for this limit", client_key=str(uuid4()))
    assert response.status_code == 413
    page = response.content.decode()
    assert "the limit is 20" in page
    assert "far too long for this limit</textarea>" in page


async def test_a_client_key_that_no_database_holds(alice: Person) -> None:
    client = await client_of(alice)
    for key in ("\x00\x00", f"a\x00{uuid4()}"):
        assert (await act(client, act="say", text=QUESTION, client_key=key)).status_code == 302
        await page_with(client, 'data-state="complete"')


async def test_a_message_while_an_answer_is_given_may_take_its_place(
    alice: Person, settings: LazySettings
) -> None:
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:stalled",)}
    client = await client_of(alice)
    await act(client, act="say", text=QUESTION, client_key=str(uuid4()))
    await page_with(client, "I would")
    second = {"act": "say", "text": "Never mind, another thing.", "client_key": str(uuid4())}
    response = await act(client, **second)
    page = response.content.decode()
    assert response.status_code == 409
    assert "Stop it and send" in page
    assert "Never mind, another thing.</textarea>" in page
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:pages",)}
    assert (await act(client, **second, interrupt="true")).status_code == 302
    page = await page_with(client, 'data-state="complete"')
    assert "You stopped this answer here." in page


async def test_stop_and_try_again_with_forms(alice: Person, settings: LazySettings) -> None:
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:broken",)}
    scripted.script("broken", [{"steps": [{"error": "bad_request"}]}, {"steps": [{"stall": True}]}])
    client = await client_of(alice)
    await act(client, act="say", text=QUESTION, client_key=str(uuid4()))
    page = await page_with(client, 'data-state="failed"')
    if "Try again" in page:
        names = {name: field(page, name) for name in ("session", "turn", "attempt")}
        assert (await act(client, act="retry", **names)).status_code == 302
        page = await page_with(client, 'data-state="running"')
        assert (await act(client, act="stop", **names)).status_code == 302
        assert 'data-state="running"' not in (await client.get("/chat/")).content.decode()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"act": "dance"},
        {"act": "end", "session": "not an id"},
        {"act": "retry", "session": str(uuid4()), "turn": str(uuid4()), "attempt": "two"},
    ],
)
async def test_a_form_nobody_made_is_a_400(alice: Person, given: dict[str, str]) -> None:
    assert (await act(await client_of(alice), **given)).status_code == 400


async def test_another_persons_conversation_is_not_there(alice: Person, bob: Person, charlie: Person) -> None:
    owner = await client_of(alice)
    await act(owner, act="say", text=QUESTION, client_key=str(uuid4()))
    page = await page_with(owner, 'data-state="complete"')
    session, turn_id = field(page, "session"), re.search(r'data-turn="([^"]+)"', page)
    assert turn_id is not None
    fragment = f"/sessions/{session}/turns/{turn_id[1]}/"
    assert (await owner.get(fragment)).status_code == 200
    for other in (bob, charlie):
        client = await client_of(other)
        theirs = [await client.get(path) for path in (f"/sessions/{session}/", fragment)]
        nobodys = await client.get(f"/sessions/{uuid4()}/")
        assert {response.status_code for response in (*theirs, nobodys)} == {404}
        assert {response.content for response in theirs} == {nobodys.content}
        assert (await act(client, act="end", session=session)).status_code == 404
        assert QUESTION not in (await client.get("/chat/")).content.decode()
    assert (await owner.get(f"/sessions/{session}/turns/{uuid4()}/")).status_code == 404


def test_paging_shows_every_session_once_in_few_queries(alice: Person) -> None:
    made = {str(open_for(alice)) for _ in range(queries.PAGE * 2 + 3)}
    client = signed_in(alice.user)
    client.get("/sessions/")
    seen: list[str] = []
    address = "/sessions/"
    for _ in range(3):
        with CaptureQueriesContext(connection) as run:
            page = client.get(address).content.decode()
        assert len([each for each in run if "set_config" not in each["sql"]]) <= 12
        seen += re.findall(r'class="title"\s+href="/sessions/([^"/]+)/"', page)
        older = re.search(r'href="\?(before=[^"]+)"', page)
        if older:
            address = "/sessions/?" + older[1].replace("&amp;", "&")
    assert len(seen) == len(set(seen))
    assert made - set(seen) == {str(open_id(alice))}  # that one is linked as the conversation going on


def open_id(person: Person) -> UUID:
    with scope(person.scope):
        found = queries.open_session()
        assert found is not None
        return found.id


@pytest.mark.parametrize(
    "cursor",
    [
        "before_id=00000000-0000-7000-8000-000000000001",
        "before=2023-01-01T00:00:00Z",
        "before=soon&before_id=x",
        "before=&before_id=x",
        "before=9999-12-31T23:59:59-23:59&before_id=00000000-0000-7000-8000-000000000001",
    ],
)
def test_half_a_cursor_is_a_400(alice: Person, cursor: str) -> None:
    assert signed_in(alice.user).get(f"/sessions/?{cursor}").status_code == 400


def test_a_title_that_cannot_be_opened_leaves_the_rest_of_the_page(alice: Person) -> None:
    first = say(alice, "A first plan for the spring campaign", "key-one-1").session
    with scope(alice.scope):
        actions.end(session=first)
    say(alice, "Something else about the forum", "key-two-2")
    open_for(alice)
    with scope(alice.scope), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sessions SET title = set_byte(title, 20, get_byte(title, 20) # 1) WHERE id = %s", [first]
        )
    client = signed_in(alice.user)
    page = client.get("/sessions/").content.decode()
    assert "This title cannot be opened" in page
    assert "Something else about the forum" in page
    assert client.get(f"/sessions/{first}/").status_code == 200


def test_times_are_those_of_the_persons_own_clock(alice: Person) -> None:
    client = signed_in(alice.user)
    client.post("/settings/", {"display_name": "", "time_zone": "Asia/Tokyo", "language": "en"})
    at = datetime(2023, 7, 21, 20, 30, tzinfo=UTC)
    with scope(alice.scope):
        row = Session(
            started_at=at,
            ended_at=at + timedelta(minutes=5),
            last_activity_at=at,
            closed_at=at,
            close_reason="idle",
        )
        row.save(force_insert=True)
    assert "Saturday, 22 July 2023, 05:30–05:35" in client.get("/sessions/").content.decode()


def test_what_stands_inside_a_turn_stays_with_it() -> None:
    one, two, now = uuid7(), uuid7(), datetime(2026, 5, 3, tzinfo=UTC)
    items: list[Item] = [
        MessageItem(1, uuid7(), now, turn=one, text="a", readable=True),
        PromptItem(2, uuid7(), now, refreshed=False, late=False, sections=()),
        RecallItem(3, uuid7(), now, turn=one, late=True, sections=()),
        MessageItem(4, uuid7(), now, turn=two, text="b", readable=True),
        ClosedItem(5, uuid7(), now, reason="idle", by="clock"),
    ]
    assert [(block.turn, len(block.items)) for block in blocks(items)] == [
        (one, 3),
        (two, 1),
        (None, 1),
    ]


def test_pages_take_no_other_methods(alice: Person) -> None:
    client: Client = signed_in(alice.user)
    assert client.post("/chat/").status_code == 405
    assert client.get("/chat/act/").status_code == 405
    assert client.delete("/sessions/").status_code == 405
