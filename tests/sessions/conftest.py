"""A session to append to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings

from memberintel.lib import clock
from memberintel.llm.backends import scripted
from memberintel.tenancy.context import scope
from sessions import actions, turn
from sessions.actions import Said
from tests.conftest import Person
from tests.sessions.talk import Script


@pytest.fixture
def script(settings: LazySettings) -> Script:
    """`script(*plays)` makes the advisor play them; titles come from the offline advisor."""

    def play(*plays: dict[str, Any], purpose: str = "chat") -> str:
        name = f"s{uuid4().hex[:8]}"
        scripted.script(name, list(plays))
        settings.LLM_ROUTES = {**settings.LLM_ROUTES, purpose: (f"scripted:{name}",)}
        settings.LLM_PATIENCE = {**settings.LLM_PATIENCE, "tries": 1}
        return name

    return play


@pytest.fixture
async def quick(settings: LazySettings) -> AsyncIterator[None]:
    """Answers are saved often; all turns have ended when the test has."""
    settings.TURN_FLUSH_SECONDS = 0.05
    yield
    await turn.drain()


def open_for(person: Person) -> UUID:
    """A fresh open session of that person."""
    with scope(person.scope):
        return actions.open_session(close_previous=True)


def say(person: Person, text: str, key: str, **more: object) -> Said:
    """The person says something; the turn's lease is taken and nobody answers."""
    with scope(person.scope):
        return actions.say(text=text, client_key=key, now=clock.now(), **more)  # type: ignore[arg-type]
