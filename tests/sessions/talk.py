"""Talking to an advisor whose model plays a script, in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from memberintel.tenancy.unit import unit
from sessions import actions, live, log, turn
from sessions.actions import Said
from sessions.domain.events import Event
from tests.conftest import Person
from tests.waiting import until_true

QUESTION = "Our churn went up to nine percent in May; what should we look at first, and why is that?"
Script = Callable[..., str]
Told = list[tuple[str, dict[str, Any]]]


async def say(person: Person, text: str = QUESTION, **more: Any) -> Said:
    """The person says something and the turn begins."""
    said: Said = await unit(person.scope, lambda: actions.say(text=text, client_key=f"key-{uuid4()}", **more))
    turn.start(person.scope, said.session, said.turn)
    return said


async def again(person: Person, said: Said, attempt: int = 1) -> Said:
    """The person tries the last turn again."""
    following, began = await unit(
        person.scope, lambda: actions.retry(session=said.session, turn=said.turn.id, attempt=attempt)
    )
    assert began
    turn.start(person.scope, said.session, following)
    return Said(said.session, following, said.seq)


async def heard(said: Said) -> Told:
    """Everything a follower hears of the turn, to its end."""
    await asyncio.sleep(0)  # the turn starts on the loop's next round
    feed = live.feed_of(said.turn.id, said.turn.attempt)
    assert feed is not None
    return [(event.name, event.data) async for event in feed.follow()]


async def talked(person: Person, text: str = QUESTION, **more: Any) -> tuple[Told, list[Event]]:
    """What a follower hears of a whole turn, and the log after it."""
    said = await say(person, text, **more)
    told = await heard(said)
    return told, await events_of(person, said)


async def events_of(person: Person, said: Said) -> list[Event]:
    """The log of the session."""
    return await unit(person.scope, log.load, said.session)


def spoken(told: Told, name: str = "text") -> str:
    """The text, or the reasoning, of what was heard."""
    return "".join(data["text"] for kind, data in told if kind == name)


def of_kind(events: list[Event], kind: str) -> list[Event]:
    """The events of that kind."""
    return [event for event in events if event.kind == kind]


async def until_written(
    person: Person, said: Said, kind: str, holds: Callable[[Event], bool] = lambda event: True
) -> None:
    """Returns once the log has an event of that kind for which that holds."""

    async def there() -> bool:
        return any(event.kind == kind and holds(event) for event in await events_of(person, said))

    await until_true(there)
