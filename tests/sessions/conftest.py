"""A session to append to."""

from __future__ import annotations

from uuid import UUID

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from sessions import actions
from sessions.actions import Said
from tests.conftest import Person


def open_for(person: Person) -> UUID:
    """A fresh open session of that person."""
    with scope(person.scope):
        return actions.open_session(close_previous=True)


def say(person: Person, text: str, key: str, **more: object) -> Said:
    """The person says something; the turn's lease is taken and nobody answers."""
    with scope(person.scope):
        return actions.say(text=text, client_key=key, now=clock.now(), **more)  # type: ignore[arg-type]
