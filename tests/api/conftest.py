from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings

from brain.memory.actions import Choice, New, keep
from memberintel.accounts import invitations
from memberintel.tenancy.context import scope
from sessions.models import SessionEvent
from tests.api.calls import made_token
from tests.brain.heartbeat.stage import connected, site_of
from tests.conftest import Person, make_person
from tests.wrapups.stage import ADVICE, ANSWER, PLAN, job_of, model, run, talked, wrap_ups
from wrapups import makers


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def dora() -> Person:
    """Owner of another Pro tenant, a stranger to all."""
    return make_person(tier="pro", name="dora")


type Wrap = Callable[[Person], UUID]


@pytest.fixture
def wrapped(settings: LazySettings, login: Callable[[str], AbstractContextManager[None]]) -> Wrap:
    """Makes an ended session with its wrap-up for somebody; the session's id."""

    def make(who: Person) -> UUID:
        session = talked(who.scope, PLAN, ADVICE)
        with model(settings, "api-wrap-up", {"json": ANSWER}), login("worker"):
            run(makers.do(job_of(who.scope, session).id, who.scope))
        return session

    return make


@pytest.fixture
def ids(alice: Person, wrapped: Wrap) -> dict[str, Any]:
    """Ids of things of Alice's, for every address."""
    session = wrapped(alice)
    (wrap_up,) = wrap_ups(alice.scope, session)
    with scope(alice.scope):
        turn = SessionEvent.objects.filter(session_id=session, turn__isnull=False).values_list(
            "turn", flat=True
        )[0]
        invitation = invitations.invite(f"{uuid4().hex}@example.com", by=alice.user.id).id
        memory = keep(New("Evenings are for the studio.", "", "customer"), None, Choice()).id
    token = made_token(alice, "read").token.id
    colleague = make_person(tier="pro", tenant=alice.user.tenant, owner=False, name="colin").user.id
    site = site_of(alice)
    source = connected(alice, site, "stripe", key="rk_test_pretended")
    return {
        "site": site,
        "source": source,
        "session": session,
        "turn_id": turn,
        "wrap_up": wrap_up.id,
        "item": wrap_up.open_item_ids[0],
        "token": token,
        "kind": "soul",
        "person": colleague,
        "invitation": invitation,
        "memory": memory,
    }
