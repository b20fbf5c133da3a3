"""Scenes the tests of wrap-ups play in: sessions through the real log, models that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memberintel.lib import clock, tokens
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, scope
from sessions import closing, log
from sessions.domain import events as kinds
from sessions.log import Turn
from sessions.models import CloseReason, Session
from wrapups.models import ClosingJob, JobKind, JobState, SessionLog

PLAN = (
    "We decided to run a 20 % discount campaign for the yearly plan from 1 March. I'll write the e-mail to the"
    " members by Friday."
)
ADVICE = "That is a good start. You should look at the cancellation survey before you send it."

ANSWER: dict[str, Any] = {
    "summary": "They plan a discount campaign. It starts on 1 March.",
    "decisions": [{"text": "Run a 20 % discount campaign from 1 March", "messages": [1]}],
    "open_items": [{"text": "Write the e-mail to the members by Friday", "messages": [1]}],
    "new_context": [],
    "next_session_note": "Ask how the discount campaign went.",
    "resolved": [],
}


def talked(
    who: Scope,
    *said: str,
    at: datetime | None = None,
    off_record: bool = False,
    continues: UUID | None = None,
    journal: bool = False,
) -> UUID:
    """A session with these messages, the customer's first and then by turns; ended. Its id.

    Without `journal` a wrap-up alone is owed for it.
    """
    at = at or clock.now() - timedelta(hours=1)
    with scope(who):
        row = Session(
            started_at=at, ended_at=at, last_activity_at=at, off_record=off_record, continues=continues
        )
        row.save(force_insert=True)
        log.append(row.id, kinds.session_opened(off_record=off_record, continues=continues), at=at)
        turn = Turn(uuid7(), 1, "test")
        for place, text in enumerate(said):
            if place % 2 == 0:
                turn = Turn(uuid7(), 1, "test")
                draft = kinds.user_message(text=text, tokens=tokens.count(text))
            else:
                draft = kinds.assistant_turn(
                    text=text, tokens=tokens.count(text), model="extractive", provider="offline"
                )
            log.append(row.id, draft, turn=turn, at=at + timedelta(minutes=place))
        assert closing.close(row.id, reason=CloseReason.ENDED, by="customer", now=clock.now())
        if not journal:
            rest = ClosingJob.objects.filter(session_id=row.id).exclude(kind=JobKind.WRAP_UP)
            rest.update(state=JobState.DELETED)
    return row.id


def job_of(who: Scope, session: UUID, kind: str = JobKind.WRAP_UP) -> ClosingJob:
    """A job of the session's as it stands."""
    with scope(who):
        return ClosingJob.objects.get(session_id=session, kind=kind)


def wrap_ups(who: Scope, session: UUID) -> list[SessionLog]:
    """All wrap-ups of a session."""
    with scope(who):
        return list(SessionLog.objects.filter(session_id=session))


def run[T](work: Coroutine[Any, Any, T]) -> T:
    """Its result; from a test that itself talks to the database."""
    return asyncio.run(work)


@contextmanager
def model(settings: Any, name: str, *steps: dict[str, Any]) -> Iterator[str]:
    """While inside, wrap-ups are written by a model that gives one answer for each step, the last for ever."""
    from memberintel.llm.backends import scripted

    scripted.script(name, [{"steps": [step]} for step in steps])
    before = settings.LLM_ROUTES, settings.LLM_PATIENCE
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "wrap_up": (f"scripted:{name}",)}
    settings.LLM_PATIENCE = {"tries": 1, "first_wait": 0.01, "longest_wait": 0.01}
    try:
        yield name
    finally:
        settings.LLM_ROUTES, settings.LLM_PATIENCE = before
