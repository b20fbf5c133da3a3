"""What the idle sweep costs among a million sessions, and how fast what it finds is closed."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import batched

import psycopg
from psycopg import sql

from evals.performance.log import QUESTION, customer
from evals.performance.results import Figure, at_least, at_most
from memberintel.celery import app
from memberintel.embedded import children
from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from memberintel.vault import keyring
from sessions import actions, closing, indexer, log, tasks
from sessions.domain import events as kinds
from sessions.models import CloseReason

SESSIONS = 1_000_000
DUE, WARM, SWEPT = 300, 20, 900
ROUNDS = 50
SILENT = timedelta(hours=3)


def figures() -> Iterator[Figure]:
    """Finding the 300 that are due among a million; closing as many in one process, and with a worker of two."""
    _crowd(customer())
    _go_quiet(WARM + DUE)
    _analyse()
    found = closing.due(now=clock.now(), idle=True, limit=tasks.MOST)
    if len(found) != WARM + DUE:
        raise RuntimeError(f"{len(found)} sessions were found to be due")
    yield at_most("the idle sweep finds what is due among 1,000,000 sessions", _finding(), 10, "ms")
    _close(found[:WARM])  # the first ones load the queue's client
    keyring.cache.clear()  # a worker meets most customers anew
    begun = time.perf_counter()
    _close(found[WARM:])
    yield at_least(
        "sessions the sweep closes, in one process", DUE / (time.perf_counter() - begun), 300, "/s"
    )
    _go_quiet(SWEPT)
    yield at_least("the same through the queue, with a worker of two processes", SWEPT / _swept(), 300, "/s")


def _close(due: Sequence[closing.Due]) -> None:
    for some in batched(due, tasks.TOGETHER, strict=False):
        if closing.close_due(some, now=clock.now()) != len(some):
            raise RuntimeError("a session that was due did not close")


def _finding() -> float:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        closing.due(now=clock.now(), idle=True, limit=tasks.MOST)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def _swept() -> float:
    """Seconds from the sweep's start until nothing is due any more."""
    options = ["--queues", "default", "--concurrency", "2", "--loglevel", "WARNING"]
    worker = children.start(
        [sys.executable, "-m", "celery", "--app", "memberintel", "--quiet", "worker", *options],
        env={
            **os.environ,
            "MEMBERINTEL_PROCESS": "worker",
            "PYTHONWARNINGS": "ignore:You're running the worker",
        },
    )
    try:
        while not app.control.ping(timeout=0.2):
            if worker.poll() is not None:
                raise RuntimeError("the worker ended")
        begun = time.perf_counter()
        tasks.sweep.delay()
        while closing.due(now=clock.now(), idle=True, limit=1):
            time.sleep(0.01)
        return time.perf_counter() - begun
    finally:
        children.stop(worker, ((signal.SIGTERM, 20.0),))


def _go_quiet(many: int) -> None:
    """So many customers said something three hours ago, and nothing since."""
    for _ in range(many):
        _quiet(customer(), clock.now() - SILENT)
    indexer.settle()  # the words of these messages are indexed by whoever wrote them, not by the sweep


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
