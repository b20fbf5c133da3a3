"""Deleting a session whole: what goes, what stays, and that nothing of it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.conf import LazySettings, settings
from redis import Redis

from brain import actions as brain
from brain import queries as brain_queries
from brain.domain.prompt import RenderedPart
from memberintel.lib import clock
from memberintel.llm.backends import scripted
from memberintel.privacy.participants import Left
from memberintel.tenancy.context import scope
from sessions import actions, indexer, live, log, queries, search, titler, turn
from sessions.domain import events as kinds
from sessions.models import EraseReason, Session
from tests.conftest import Person
from tests.sessions.conftest import open_for, say
from tests.sessions.test_api import client_of
from tests.sessions.test_erasure import PLAN, Login, finished
from tests.waiting import until_true
from tests.wrapups.stage import ANSWER, job_of, model, run, wrap_ups
from wrapups import makers, work
from wrapups.models import ClosingJob, JobState, JournalEntry


@pytest.fixture(autouse=True)
async def _drained(settings: LazySettings) -> AsyncIterator[None]:
    scripted.script("stalled-here", [{"steps": [{"text": "I would "}, {"stall": True}]}])
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:stalled-here",)}
    settings.SECURE_SSL_REDIRECT = False
    yield
    await turn.drain()


def delete(person: Person, session: UUID) -> bool:
    with scope(person.scope):
        return actions.delete(session=session)


def test_a_closed_one_goes_with_its_wrap_up_and_every_copy(
    alice: Person, settings: Any, login: Login
) -> None:
    session = finished(alice)
    with model(settings, f"answer-{uuid4().hex[:8]}", {"json": ANSWER}), login("worker"):
        assert run(makers.do(job_of(alice.scope, session).id, alice.scope)) == work.Written()
    [wrap_up] = wrap_ups(alice.scope, session)
    with scope(alice.scope):
        now = clock.now()
        times = {"session_started_at": now, "session_last_activity_at": now}
        JournalEntry.objects.create(session_id=session, blob="I thought about zeppelins.", **times)
        named = [
            RenderedPart("soul", "soul", "soul", None),
            RenderedPart("wrap_ups", "notes", "wrap_up", wrap_up.id),
            RenderedPart("wrap_ups", "draft", "wrap_up_draft", session),
        ]
        pairs = [(part.name, digest) for part, digest in zip(named, brain.store_parts(named), strict=True)]
        digests = [kinds.SectionDigest(name=name, digest=digest) for name, digest in pairs]
        open_ = actions.open_session()
        log.append(open_, kinds.context_frozen(sections=digests))
        assert actions.delete(session=session)
        assert [part.text for part in brain_queries.prompt_parts(pairs)] == ["soul", None, None]
        newest = log.load(open_)[-1]
        assert (newest.kind, newest.payload["sections"]) == (kinds.PROMPT_REFRESHED, digests[:1])
        assert log.load(session) == []
        assert search.search("zeppelin") == []
        assert not JournalEntry.objects.filter(session_id=session).exists()
        states = ClosingJob.objects.filter(session_id=session).values_list("state", flat=True)
        assert set(states) == {JobState.DELETED}
    assert wrap_ups(alice.scope, session) == []
    job = job_of(alice.scope, session)
    assert job.state == JobState.DELETED
    with login("worker"):
        assert run(makers.do(job.id, alice.scope)) == work.NotOurs()
    assert not delete(alice, session)


def test_one_whose_wrap_up_is_still_owed_gets_none(alice: Person, settings: Any, login: Login) -> None:
    session = finished(alice)
    assert job_of(alice.scope, session).state == JobState.QUEUED
    assert delete(alice, session)
    with model(settings, f"answer-{uuid4().hex[:8]}", {"json": ANSWER}), login("worker"):
        assert run(makers.do(job_of(alice.scope, session).id, alice.scope)) == work.NotOurs()
    assert wrap_ups(alice.scope, session) == []


def test_an_open_one_closes_with_nothing_owed_and_its_turn_writes_nothing_more(alice: Person) -> None:
    said = say(alice, PLAN, "key-open-1")
    assert delete(alice, said.session)
    with scope(alice.scope):
        row = Session.objects.get(id=said.session)
        assert (row.close_reason, row.erase_reason) == ("erased", "customer")
        assert not ClosingJob.objects.filter(session_id=said.session).exists()
        done = kinds.assistant_turn(text="too late", tokens=2, model="m", provider="p")
        with pytest.raises(log.SessionClosed):
            log.append(said.session, done, turn=said.turn, lease=log.Lease.RELEASE)
        titler.keep(said.session, "A title that came too late")
        assert Session.objects.get(id=said.session).title is None
        assert queries.open_session() is None


def test_a_deleted_one_is_listed_nowhere_and_takes_no_message(alice: Person) -> None:
    session = finished(alice)
    delete(alice, session)
    with scope(alice.scope):
        assert session not in [row.id for row in queries.list_sessions()]
    for close_previous in (False, True):
        with pytest.raises(actions.Conflict) as refused:
            say(alice, "Hello?", "key-gone-1", session=session, close_previous=close_previous)
        assert refused.value.code == "session_erased"
        assert "new conversation" in refused.value.text


def test_one_off_the_record_can_be_taken_off_the_list(alice: Person) -> None:
    for closed_before in (True, False):
        with scope(alice.scope):
            session = actions.open_session(close_previous=True, off_record=True)
            if closed_before:
                actions.end(session=session)
                assert session in [row.id for row in queries.list_sessions()]
            assert actions.delete(session=session)
            assert session not in [row.id for row in queries.list_sessions()]
            assert Session.objects.get(id=session).erase_reason == EraseReason.CUSTOMER
            assert log.load(session) == []


def test_nobody_elses(alice: Person, bob: Person, charlie: Person) -> None:
    session = finished(alice)
    for other in (bob, charlie):
        with pytest.raises(actions.NotFound):
            delete(other, session)
    with scope(alice.scope):
        assert len(log.load(session)) == 3


def test_a_deletion_that_breaks_half_way_deletes_nothing(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_for(alice)
    monkeypatch.setattr("sessions.actions.participants.forget_session", lambda session: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        delete(alice, session)
    with scope(alice.scope):
        assert Session.objects.get(id=session).is_open
        assert len(log.load(session)) == 1


async def test_the_api_deletes_while_an_answer_streams(alice: Person) -> None:
    client = await client_of(alice)
    said = await client.post(
        "/api/v1/messages/", {"text": PLAN, "client_key": str(uuid4())}, content_type="application/json"
    )
    told = said.json()
    session, turn_id = told["session"], UUID(told["turn"])
    redis = Redis.from_url(settings.REDIS_URL)
    name = f"live:{turn_id}:1"
    await until_true(lambda: asyncio.to_thread(redis.exists, name))
    for _ in range(2):
        assert (await client.delete(f"/api/v1/sessions/{session}/")).status_code == 204
    assert not redis.exists(name)
    redis.close()
    assert live.feed_of(turn_id, 1) is None
    assert (await client.get(told["stream"])).status_code == 404
    gone = (await client.get(f"/api/v1/sessions/{session}/")).json()
    assert (gone["erase_reason"], gone["title"], gone["items"]) == ("customer", None, [])
    message = {"text": "Hello?", "client_key": str(uuid4()), "session": session}
    refused = await client.post("/api/v1/messages/", message, content_type="application/json")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/session-erased")
    listed = (await client.get("/api/v1/sessions/")).json()["items"]
    assert session not in [row["id"] for row in listed]


async def test_the_page_asks_says_what_goes_and_offers_what_stays(
    alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sync_to_async(finished)(alice)
    kept = Left("Remembered:", "Prefers <b>zeppelins</b>", uuid4(), "/brain/memory/delete-it/")
    monkeypatch.setattr("sessions.views.participants.left_from_session", lambda session: [kept])
    client = await client_of(alice)
    address = f"/sessions/{session}/delete/"
    page = (await client.get(address)).content.decode()
    assert "every word of the conversation" in page
    assert "Prefers &lt;b&gt;zeppelins&lt;/b&gt;" in page
    assert 'action="/brain/memory/delete-it/"' in page
    stranger = await client_of(bob)
    for answer in (await stranger.get(address), await stranger.post(address)):
        assert answer.status_code == 404
    assert (await client.post(address))["Location"] == f"/sessions/{session}/"
    page = (await client.get(f"/sessions/{session}/")).content.decode()
    assert "You deleted it on" in page
    assert "zeppelin campaign" not in page
    assert 'action="/brain/memory/delete-it/"' in page
    assert (await client.get(address)).status_code == 302
    indexer.settle()
