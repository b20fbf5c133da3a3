"""The API as a client sees it: over HTTP, with problem documents and server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import AsyncClient
from redis import Redis

from memberintel.lib import sse
from memberintel.llm.backends import scripted
from sessions import turn
from tests.conftest import Person
from tests.waiting import PATIENCE

QUESTION = "What would you change about our onboarding, given that members leave in the first month?"


@pytest.fixture(autouse=True)
async def _drained(settings: LazySettings) -> AsyncIterator[None]:
    scripted.script("api", [{"steps": [{"text": "Ask them "}, {"text": "why."}]}])
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": ("scripted:api",)}
    settings.SECURE_SSL_REDIRECT = False
    yield
    await turn.drain()


async def client_of(person: Person) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(person.user, backend="django.contrib.auth.backends.ModelBackend")
    return client


async def post(client: AsyncClient, path: str, given: Any) -> tuple[int, dict[str, Any]]:
    response = await client.post(path, json.dumps(given), content_type="application/json")
    return response.status_code, json.loads(response.content) if response.content else {}


async def say(client: AsyncClient, text: str = QUESTION, **more: Any) -> tuple[int, dict[str, Any]]:
    return await post(client, "/api/v1/messages/", {"text": text, "client_key": f"key-{uuid4()}"} | more)


async def listen(client: AsyncClient, address: str, last_id: str = "") -> list[sse.ServerEvent]:
    response: Any = await client.get(address, headers={"Last-Event-ID": last_id} if last_id else {})
    assert response["Content-Type"] == "text/event-stream"
    reader = sse.Reader()
    return [event async for chunk in response.streaming_content for event in reader.feed(chunk)]


async def test_say_and_follow(alice: Person) -> None:
    client = await client_of(alice)
    status, said = await say(client)
    assert status == 201
    events = await listen(client, said["stream"])
    assert (events[0].event, {event.event for event in events[1:-1]}, events[-1].event) == (
        "turn",
        {"text"},
        "done",
    )
    assert "".join(event.json()["text"] for event in events[1:-1]) == "Ask them why."  # type: ignore[index]
    assert all(event.id for event in events)


async def test_follow_resumes_after_the_last_id(alice: Person) -> None:
    client = await client_of(alice)
    _, said = await say(client)
    events = await listen(client, said["stream"])
    again = await listen(client, said["stream"], str(events[-2].id))
    assert [event.event for event in again] == ["done"]


async def test_another_process_follows_through_redis_from_any_point(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await client_of(alice)
    _, said = await say(client)
    here = await listen(client, said["stream"])
    monkeypatch.setattr("sessions.live.feed_of", lambda *_: None)
    assert await listen(client, said["stream"]) == here
    for place, event in enumerate(here[:-1]):
        assert await listen(client, said["stream"], str(event.id)) == here[place + 1 :]


async def test_what_passes_through_redis_is_sealed(alice: Person, settings: LazySettings) -> None:
    _, said = await say(client := await client_of(alice))
    events = await listen(client, said["stream"])
    await turn.drain()  # what is put there comes after what is heard here
    with Redis.from_url(settings.REDIS_URL) as redis:
        entries = redis.xrange(f"live:{said['turn']}:1")
        assert redis.ttl(f"live:{said['turn']}:1") > 300
    assert len(entries) == len(events)
    assert b"Ask them" not in str(entries).encode()


@pytest.mark.parametrize("lost", ["redis", "entries"])
async def test_without_redis_another_process_follows_the_log(
    alice: Person, monkeypatch: pytest.MonkeyPatch, settings: LazySettings, lost: str
) -> None:
    client = await client_of(alice)
    _, said = await say(client)
    await listen(client, said["stream"])
    await turn.drain()
    if lost == "redis":
        settings.REDIS_URL = "unix:///nowhere/redis.sock"
    else:
        with Redis.from_url(settings.REDIS_URL) as redis:
            redis.xtrim(f"live:{said['turn']}:1", maxlen=1, approximate=False)
    monkeypatch.setattr("sessions.live.feed_of", lambda *_: None)
    events = await listen(client, said["stream"])
    assert [event.event for event in events] == ["turn", "done"]
    assert events[0].json()["text"] == "Ask them why."  # type: ignore[index]
    assert {event.id for event in events} == {"log"}


async def test_the_same_key_is_answered_with_the_same_turn(alice: Person) -> None:
    client = await client_of(alice)
    given = {"text": QUESTION, "client_key": "one-and-the-same"}
    first, second = (
        await post(client, "/api/v1/messages/", given),
        await post(client, "/api/v1/messages/", given),
    )
    assert (first[0], second[0]) == (201, 200)
    assert first[1]["turn"] == second[1]["turn"]
    status, problem = await post(client, "/api/v1/messages/", given | {"text": "Something else"})
    assert (status, problem["type"]) == (422, "/problems/client-key-reused")


async def test_a_message_during_an_answer_is_refused_unless_it_interrupts(alice: Person) -> None:
    scripted.script("api", [{"steps": [{"text": "Long"}, {"stall": True}]}, {"steps": [{"text": "Short."}]}])
    client = await client_of(alice)
    _, said = await say(client)
    status, problem = await say(client, "Never mind")
    assert (status, problem["turn"]) == (409, said["turn"])
    await _until_the_model_is_asked()
    status, following = await say(client, "Stop, tell me something else", interrupt=True)
    assert status == 201
    assert (await listen(client, said["stream"]))[-1].event == "done"
    assert (await listen(client, following["stream"]))[-1].event == "done"


async def test_stop_ends_the_stream_and_end_closes_the_session(alice: Person) -> None:
    scripted.script("api", [{"steps": [{"text": "Long"}, {"stall": True}]}])
    client = await client_of(alice)
    _, said = await say(client)
    base = f"/api/v1/sessions/{said['session']}"
    assert (await post(client, f"{base}/turns/{said['turn']}/stop/", {}))[0] == 202
    assert (await listen(client, said["stream"]))[-1].json() == {"outcome": "stopped"}
    assert await post(client, f"{base}/end/", {}) == (200, {"ended": True})
    assert await post(client, f"{base}/end/", {}) == (200, {"ended": False})


async def test_ending_a_session_stops_its_answer_first(alice: Person) -> None:
    scripted.script("api", [{"steps": [{"text": "Long"}, {"stall": True}]}])
    client = await client_of(alice)
    _, said = await say(client)
    assert await post(client, f"/api/v1/sessions/{said['session']}/end/", {}) == (200, {"ended": True})
    assert (await listen(client, said["stream"]))[-1].json() == {"outcome": "stopped"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "text"),
        ({"text": 5, "client_key": "key-12345678"}, "text"),
        ({"text": "hi", "client_key": "short"}, "client_key"),
        ({"text": "hi", "client_key": "key-12345678", "surprise": 1}, "surprise"),
        ({"text": "hi", "client_key": "key-12345678", "session": "not an id"}, "session"),
        ([], "body"),
    ],
)
async def test_a_wrong_body_is_a_400_that_names_the_field(alice: Person, given: Any, field: str) -> None:
    status, problem = await post(await client_of(alice), "/api/v1/messages/", given)
    assert status == 400
    assert field in [fault["field"] for fault in problem["errors"]]


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"text": NaN}'])
async def test_malformed_json_is_a_400(alice: Person, raw: bytes) -> None:
    client = await client_of(alice)
    response = await client.post("/api/v1/messages/", raw, content_type="application/json")
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("text", "status"), [("", 400), (" \n ", 400), ("\x00", 400), ("a" * 100_001, 413)])
async def test_empty_and_endless_messages(alice: Person, text: str, status: int) -> None:
    given, problem = await say(await client_of(alice), text)
    assert (given, problem["status"]) == (status, status)


async def test_other_peoples_ids_and_random_ids_are_the_same_404(
    alice: Person, bob: Person, charlie: Person
) -> None:
    _, said = await say(await client_of(alice))
    answers = set()
    for person in (bob, charlie):
        client = await client_of(person)
        for session, turn_id in ((said["session"], said["turn"]), (uuid4(), uuid4())):
            base = f"/api/v1/sessions/{session}"
            for path, given in (
                (f"{base}/end/", {}),
                (f"{base}/leaving/", {}),
                (f"{base}/turns/{turn_id}/stop/", {}),
                (f"{base}/turns/{turn_id}/retry/", {"attempt": 1}),
            ):
                answers.add(json.dumps(await post(client, path, given)))
            answers.add(json.dumps(await say(client, session=str(session))))
            stream = await client.get(f"{base}/turns/{turn_id}/stream/")
            answers.add(json.dumps((stream.status_code, json.loads(stream.content))))
    assert len(answers) == 1
    assert json.loads(answers.pop())[0] == 404


async def test_nobody_and_staff_are_told_so() -> None:
    status, problem = await say(AsyncClient())
    assert (status, problem["type"]) == (401, "/problems/not-signed-in")


async def test_other_methods_are_refused_with_the_right_one(alice: Person) -> None:
    response = await (await client_of(alice)).get("/api/v1/messages/")
    assert (response.status_code, response["Allow"]) == (405, "POST")


async def _until_the_model_is_asked() -> None:
    async with asyncio.timeout(PATIENCE):
        while not scripted.wires("api"):
            await asyncio.sleep(0.01)
