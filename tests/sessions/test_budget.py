"""A month's answers: refused when they are used up with nothing written, charged once, given back for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings

from memberintel.llm.backends import scripted
from memberintel.tenancy.unit import unit
from memberintel.usage import charges
from memberintel.usage.models import Kind
from sessions import actions, lease, live, queries, turn
from sessions.actions import Said
from sessions.log import Turn
from tests.conftest import Person, make_person
from tests.sessions.test_api import client_of, post
from tests.sessions.test_api import say as send
from tests.usage.test_charges import at, tier_with

QUESTION = "Our churn went up to nine percent in May; what should we look at first, and why is that?"
NOON = datetime(2026, 12, 24, 12, tzinfo=UTC)
Script = Callable[..., None]


@pytest.fixture
def script(settings: LazySettings) -> Script:
    """`script(*plays)` makes the advisor play them."""

    def play(*plays: dict[str, Any]) -> None:
        name = f"b{uuid4().hex[:8]}"
        scripted.script(name, list(plays))
        settings.LLM_ROUTES = {**settings.LLM_ROUTES, "chat": (f"scripted:{name}",)}
        settings.LLM_PATIENCE = {**settings.LLM_PATIENCE, "tries": 1}

    return play


@pytest.fixture(autouse=True)
async def _quick(settings: LazySettings) -> AsyncIterator[None]:
    settings.TURN_FLUSH_SECONDS = 0.05
    settings.SECURE_SSL_REDIRECT = False
    yield
    await turn.drain()


@pytest.fixture
def alice() -> Person:
    """One answer is left to her this month."""
    return make_person(tier=tier_with(chat_turn=1))


@pytest.fixture
def broke() -> Person:
    """None is left to him."""
    return make_person(tier=tier_with(chat_turn=0))


async def say(person: Person, key: str = "") -> Said:
    return await unit(person.scope, lambda: actions.say(text=QUESTION, client_key=key or f"key-{uuid4()}"))


async def answered(person: Person, said: Said, following: Turn | None = None) -> str:
    """Let the turn run to its end; how it ended."""
    running = following or said.turn
    turn.start(person.scope, said.session, running)
    await asyncio.sleep(0)  # the turn starts on the loop's next round
    feed = live.feed_of(running.id, running.attempt)
    assert feed is not None
    return [event.name async for event in feed.follow()][-1]


async def used(person: Person) -> int:
    budget: charges.Budget = await unit(person.scope, charges.left, Kind.CHAT_TURN)
    return budget.used


async def retry(person: Person, said: Said, attempt: int) -> Turn:
    following, began = await unit(
        person.scope, lambda: actions.retry(session=said.session, turn=said.turn.id, attempt=attempt)
    )
    assert began
    return following


async def test_an_answer_is_charged_once_however_often_its_message_is_sent(
    alice: Person, script: Script
) -> None:
    script({"steps": [{"text": "Look at onboarding."}]})
    said = await say(alice, "key-12345678")
    again = await say(alice, "key-12345678")
    assert again.repeated
    assert await answered(alice, said) == "done"
    assert await used(alice) == 1


async def test_when_answers_are_used_up_nothing_is_written(broke: Person, script: Script) -> None:
    with pytest.raises(actions.BudgetUsedUp):
        await say(broke)
    assert await unit(broke.scope, queries.open_session) is None
    assert await used(broke) == 0


async def test_the_api_says_402_and_when_there_are_new_ones(broke: Person) -> None:
    client = await client_of(broke)
    with at(NOON):
        status, problem = await send(client)
    assert status == 402
    assert (problem["type"], problem["renews"]) == ("/problems/budget-used-up", "2027-01-01")
    assert "1 January" in problem["detail"]
    assert problem["title"] == "Payment Required"


async def test_the_page_keeps_what_was_typed_and_says_when(broke: Person) -> None:
    client = await client_of(broke)
    with at(NOON):
        response = await client.post(
            "/chat/act/", {"act": "say", "text": f"{QUESTION} <b>", "client_key": "key-12345678"}
        )
    page = response.content.decode()
    assert response.status_code == 402
    assert f"{QUESTION} &lt;b&gt;</textarea>" in page
    assert "1 January" in page
    assert 'href="/usage/">See what is used' in page
    assert await unit(broke.scope, queries.open_session) is None


@pytest.mark.parametrize(
    ("steps", "charged"),
    [
        ([{"error": "overloaded"}], 0),
        ([{"text": "Half an"}, {"error": "unavailable"}], 1),
        ([{"text": "The whole."}], 1),
    ],
)
async def test_an_answer_that_came_to_nothing_is_given_back(
    alice: Person, script: Script, steps: list[dict[str, Any]], charged: int
) -> None:
    script({"steps": steps})
    await answered(alice, await say(alice))
    assert await used(alice) == charged


async def test_an_answer_stopped_before_its_first_word_is_given_back(alice: Person, script: Script) -> None:
    script({"steps": [{"stall": True}]})
    said = await say(alice)
    await unit(alice.scope, lease.ask_to_stop, said.session, said.turn.id)  # as another process would
    assert await answered(alice, said) == "done"
    assert await used(alice) == 0


async def test_trying_again_charges_what_was_given_back_and_nothing_twice(
    alice: Person, script: Script
) -> None:
    script(
        {"steps": [{"error": "overloaded"}]},
        {"steps": [{"text": "Half an"}, {"error": "overloaded"}]},
        {"steps": [{"text": "The whole."}]},
    )
    said = await say(alice)
    await answered(alice, said)
    assert await used(alice) == 0
    for attempt in (1, 2):
        await answered(alice, said, await retry(alice, said, attempt))
        assert await used(alice) == 1


async def test_trying_again_is_refused_when_others_have_used_what_was_given_back(
    alice: Person, script: Script
) -> None:
    script({"steps": [{"error": "overloaded"}]})
    said = await say(alice)
    await answered(alice, said)
    await unit(alice.scope, charges.take, Kind.CHAT_TURN, uuid4())
    client = await client_of(alice)
    path = f"/api/v1/sessions/{said.session}/turns/{said.turn.id}/retry/"
    status, _ = await post(client, path, {"attempt": 1})
    assert status == 402
    row = await unit(alice.scope, queries.get_session, said.session)
    assert row is not None
    assert queries.running_turn(row) is None


async def test_no_answer_is_stopped_for_a_message_that_is_not_taken(alice: Person, script: Script) -> None:
    script({"steps": [{"text": "So far so good."}, {"stall": True}]})
    client = await client_of(alice)
    status, said = await send(client)
    assert status == 201
    status, _ = await send(client, interrupt=True)
    assert status == 402
    row = await unit(alice.scope, queries.get_session, UUID(said["session"]))
    assert row is not None
    assert str(queries.running_turn(row)) == said["turn"]
    await turn.stop(UUID(said["turn"]))
