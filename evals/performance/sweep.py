"""What the idle sweep costs among a million sessions, and how fast what it finds is closed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
from psycopg import sql

from evals.performance.log import QUESTION, customer
from evals.performance.results import Figure, at_least, at_most
from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from sessions import actions, closing, indexer, log
from sessions.domain import events as kinds
from sessions.models import CloseReason

SESSIONS = 1_000_000
DUE, WARM = 300, 20
ROUNDS = 50
SILENT = timedelta(hours=3)


def figures() -> Iterator[Figure]:
    """Finding the 300 that are due among a million, and closing them one by one as the workers do."""
    _crowd(customer())
    then = clock.now() - SILENT
    for _ in range(WARM + DUE):
        _quiet(customer(), then)
    _analyse()
    found = closing.due(now=clock.now(), idle=True, limit=10 * DUE)
    if len(found) != WARM + DUE:
        raise RuntimeError(f"{len(found)} sessions were found to be due")
    indexer.settle()  # the words of these messages are indexed by whoever wrote them, not by the sweep
    yield at_most("the idle sweep finds what is due among 1,000,000 sessions", _finding(), 10, "ms")
    _close(found[:WARM])  # the first ones load the queue's client
    begun = time.perf_counter()
    _close(found[WARM:])
    yield at_least(
        "sessions the sweep closes, in one process", DUE / (time.perf_counter() - begun), 300, "/s"
    )


def _close(due: Sequence[tuple[UUID, UUID, UUID, CloseReason]]) -> None:
    for session, tenant, who, reason in due:
        with scope(Scope(tenant, who)):
            if not closing.close(session, reason=reason, by="clock", now=clock.now()):
                raise RuntimeError("a session that was due did not close")


def _finding() -> float:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        closing.due(now=clock.now(), idle=True, limit=500)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def _quiet(who: Scope, then: datetime) -> None:
    """An open session in which something was said three hours ago."""
    with scope(who):
        session = actions.open_session(now=then)
        log.append(session, kinds.user_message(text=QUESTION, tokens=50), at=then)


def _crowd(who: Scope) -> None:
    """A million closed sessions: one of them, copied."""
    with scope(who):
        session = actions.open_session()
        closing.close(session, reason=CloseReason.ENDED, by="customer", now=clock.now())
    with psycopg.connect(os.environ["DATABASE_URL_OWNER"], autocommit=True) as owner:
        named = owner.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND table_name = 'sessions' AND column_name <> 'id' AND is_generated = 'NEVER'"
        ).fetchall()
        columns = sql.SQL(", ").join(sql.Identifier(name) for (name,) in named)
        copy = sql.SQL(
            "INSERT INTO sessions (id, {0}) SELECT gen_random_uuid(), {0} FROM sessions, generate_series(2, %s)"
            " WHERE id = %s"
        ).format(columns)
        owner.execute(copy, [SESSIONS, session])


def _analyse() -> None:
    with psycopg.connect(os.environ["DATABASE_URL_OWNER"], autocommit=True) as owner:
        owner.execute("VACUUM (ANALYZE) sessions")
