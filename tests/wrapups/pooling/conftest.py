"""Tenants that agreed to pooling, and pooling itself, on for the length of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connection

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, scope
from memberintel.usage import runs
from sessions import closing, log
from sessions.domain import events as kinds
from sessions.models import CloseReason, Session
from tests.admin.staff import clerk
from tests.conftest import Person, login_as, make_person
from wrapups.models import LegalReview, PooledSupport, SessionLog
from wrapups.pooling import choices, legal, queries, review
from wrapups.pooling.models import PooledGroup

SUPPORT = "support"


@pytest.fixture(autouse=True)
def _calm(settings: LazySettings) -> None:
    """Every tenant is in the sample, and reviews may follow each other."""
    settings.POOLING_SHARE, settings.POOLING_EVERY_DAYS = 1.0, 0
    forget_others()


def forget_others() -> None:
    """Tests here count everybody: who other tests have let take part, and the rows they have made, count no more."""
    with login_as("owner"), connection.cursor() as cursor:
        cursor.execute("UPDATE pooling_choices SET takes_part = false WHERE takes_part")
        cursor.execute("DELETE FROM pooled_support")
        cursor.execute("DELETE FROM pooled_groups")


def reviewed_by_lawyers(ground: str = LegalReview.Ground.CONSENT, *, running: bool = True) -> LegalReview:
    """A legal review as a lead records it."""
    row = LegalReview(reference="Opinion of 1 December, kept with the contracts", ground=ground)
    legal.record(row, by=clerk("lead"), using=SUPPORT)
    if running:
        legal.turn(row, on=True, using=SUPPORT)
    return row


@pytest.fixture
def lawyers() -> Iterator[LegalReview]:
    """Pooling is on, for tenants whose owner agreed."""
    row = reviewed_by_lawyers()
    yield row
    for left in LegalReview.objects.filter(ended_at=None):
        legal.take_back(left, using=SUPPORT)


@pytest.fixture
def member() -> Iterator[Callable[..., Person]]:
    """Makes owners of tenants that take part; they leave when the test is over."""
    made: list[Person] = []

    def make(*decisions: str, open_items: tuple[str, ...] = (), agrees: bool = True) -> Person:
        who = make_person(tier="pro", name="member")
        made.append(who)
        if agrees:
            with scope(who.scope):
                choices.choose(by=who.user.pk, takes_part=True)
        if decisions or open_items:
            noted(who.scope, *decisions, open_items=open_items)
        return who

    yield make
    for who in made:
        with scope(who.scope):
            choices.choose(by=who.user.pk, takes_part=False)


def noted(who: Scope, *decisions: str, open_items: tuple[str, ...] = (), **more: str) -> SessionLog:
    """A wrap-up of a closed session, as a worker writes it."""
    now = clock.now()
    with scope(who):
        session = Session(started_at=now, ended_at=now, last_activity_at=now)
        session.save(force_insert=True)
        log.append(session.id, kinds.session_opened(off_record=False, continues=None), at=now)
        closing.close(session.id, reason=CloseReason.ENDED, by="customer", now=now)
    with login_as("worker"), scope(who):
        opened = _items(open_items)
        return SessionLog.objects.create(
            session_id=session.id,
            session_started_at=now,
            session_last_activity_at=now,
            summary=more.get("summary", "They talked."),
            decisions=_items(decisions),
            open_items=opened,
            open_item_ids=[item["id"] for item in opened],
            new_context=_items((more["new_context"],)) if "new_context" in more else [],
            next_session_note=more.get("note", "Ask how it went."),
            model="offline:extractive",
            prompt_version="test-1",
            word_count=20,
        )


def _items(texts: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"id": str(uuid7()), "text": text, "messages": [1]} for text in texts]


def run() -> dict[str, int]:
    """The step of the daily run, as the worker does it; what it counted."""
    with login_as("worker"), runs.recorded(f"test-{uuid4().hex[:8]}") as recorded:
        review.step(recorded)
    return dict(recorded.counts)


def shown() -> list[list[str]]:
    """The wordings of what staff see."""
    return [list(group.phrases) for group in queries.shown()]


def behind(who: Person | None = None) -> int:
    """How many rows stand behind groups: of a customer, or of everybody, as the owner of the table counts them."""
    if who is not None:
        with scope(who.scope):
            return PooledSupport.objects.count()
    with login_as("owner"):
        return PooledSupport.objects.count()


def groups() -> int:
    """How many groups there are, shown or not."""
    with login_as("owner"):
        return PooledGroup.objects.count()
