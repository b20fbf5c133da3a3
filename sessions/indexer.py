"""Keeps the search index up with the log: after commit, beside the work that wrote, and never in its way.

What is appended is noted once its transaction has committed; one thread of the process then brings the session's
terms up to date, several events at a time. It waits a moment first, so that a turn which has just begun has the
processor to itself. No queue is needed, nothing of a text leaves the process, and no turn can fail by it: what a
process that died or a database that was away left out, the sweep finds by comparing numbers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection, connections, transaction
from django.dispatch import receiver

from memberintel.accounts import queries as accounts
from memberintel.lib import clock, terms
from memberintel.tenancy.context import Scope, current_customer_id, current_scope, current_tenant_id, scope
from memberintel.tenancy.rows import insert
from memberintel.vault import blind
from sessions import log
from sessions.domain import events as kinds
from sessions.domain.search import TEXTS, text_of
from sessions.models import SearchProgress, SessionTerms
from sessions.signals import event_appended

logger = logging.getLogger(__name__)

BATCH: Final = 200
"""Events read at a time."""


# --- after commit ----------------------------------------------------------------------------------------

_waiting: set[tuple[Scope, UUID]] = set()
_lock = threading.Lock()
_at_once = threading.Event()
_thread = ThreadPoolExecutor(1, thread_name_prefix="search-index")  # what it has begun, the exit waits for


@receiver(event_appended, dispatch_uid="sessions.index_appended")
def note(sender: object, session: UUID, kind: str, **kwargs: Any) -> None:
    """Have the session indexed once the event is committed, if it has a text."""
    if kind in TEXTS:
        transaction.on_commit(partial(_enqueue, current_scope(), session), robust=True)


def _enqueue(who: Scope, session: UUID) -> None:
    with _lock:
        idle = not _waiting
        _waiting.add((who, session))
    if idle:
        _thread.submit(_work_off)


def _work_off() -> None:
    _at_once.wait(settings.SEARCH_INDEX_AFTER_SECONDS)
    with _lock:
        batch = list(_waiting)
        _waiting.clear()
    try:
        for who, session in batch:
            _index_quietly(who, session)
    finally:
        connections.close_all()


def _index_quietly(who: Scope, session: UUID) -> None:
    try:
        with scope(who):
            index(session)
    except Exception as error:  # nobody waits for it; the sweep comes back to it
        logger.warning("session %s is not indexed yet: %s", session, type(error).__name__)


def settle() -> None:
    """Wait until everything committed in this process before now is in the index, or left to the sweep."""
    _at_once.set()
    try:
        _thread.submit(lambda: None).result()
    finally:
        _at_once.clear()


# --- indexing --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _State:
    """Where a session stands: in its log and in the index."""

    last_seq: int
    indexed: int


def index(session: UUID) -> int:
    """Bring the session's terms up to date, in the scope of its customer; how many texts were read.

    Idempotent, and safe beside another process doing the same. An event that cannot be opened is left out; a key
    that cannot be had is CannotOpen, and nothing is written. After a change of the customer's language, or of how
    terms are made, the session is indexed anew.
    """
    language, done = terms.stemmed_as(accounts.person().language), 0
    while True:
        with transaction.atomic():
            state = _begin(session, language)
            if state is None or state.indexed >= state.last_seq:
                return done
            read = list(_texts(session, after=state.indexed))
            _write(session, language, read)
            through = read[-1][0] if len(read) == BATCH else state.last_seq
            _go_on(session, language, through)
            done += len(read)


def rebuild(session: UUID) -> int:
    """Index the session anew from its log; how many texts were read. One transaction: it is found all the while."""
    with transaction.atomic():
        forget(session)
        return index(session)


def forget(session: UUID) -> None:
    """Remove the session's terms, in the scope of its customer: to be called where its events are erased.

    `app.erase_session` does the same by itself.
    """
    SessionTerms.objects.filter(session_id=session).delete()
    SearchProgress.objects.filter(session_id=session).delete()


_SESSION: Final = (
    "SELECT last_seq, off_record OR erased_at IS NOT NULL FROM sessions"
    " WHERE tenant_id = %(tenant)s AND customer_id = %(customer)s AND id = %(session)s"
    # Before any row of the index: whoever erases a session locks it first too, so neither waits for the other.
    " FOR KEY SHARE"
)


# Plain SQL, since it is done for every message and every answer.
_PROGRESS: Final = (
    "SELECT indexed_seq, language, version FROM search_progress"
    " WHERE tenant_id = %(tenant)s AND customer_id = %(customer)s AND session_id = %(session)s FOR UPDATE"
)
_GO_ON: Final = (
    "UPDATE search_progress SET indexed_seq = %(seq)s, language = %(language)s, version = %(version)s,"
    " indexed_at = %(now)s"
    " WHERE tenant_id = %(tenant)s AND customer_id = %(customer)s AND session_id = %(session)s"
)


def _begin(session: UUID, language: str) -> _State | None:
    """The session's state, its progress locked and right for the language; None when it is not to be indexed."""
    given = _given(session, language)
    with connection.cursor() as cursor:
        cursor.execute(_SESSION, given)
        found = cursor.fetchone()
        if found is None or found[1]:
            return None
        cursor.execute(_PROGRESS, given)
        if (progress := cursor.fetchone()) is None:
            first = SearchProgress(session_id=session, language=language, version=terms.VERSION)
            insert(first, unless=("tenant_id", "customer_id", "session_id"))
            cursor.execute(_PROGRESS, given)  # another process may have made it meanwhile
            progress = cursor.fetchone()
    indexed, *made = progress
    if made != [language, terms.VERSION]:
        SessionTerms.objects.filter(session_id=session).delete()
        indexed = 0
    return _State(found[0], indexed)


def _go_on(session: UUID, language: str, through: int) -> None:
    """Note that the session is indexed up to that event, its terms made as they are made now."""
    with connection.cursor() as cursor:
        cursor.execute(_GO_ON, _given(session, language) | {"seq": through})


def _given(session: UUID, language: str) -> dict[str, Any]:
    return {
        "tenant": current_tenant_id(),
        "customer": current_customer_id(),
        "session": session,
        "language": language,
        "version": terms.VERSION,
        "now": clock.now(),
    }


def _texts(session: UUID, *, after: int) -> Iterator[tuple[int, str | None]]:
    """(seq, text) of the next BATCH events with a text; None for one that cannot be opened."""
    for event in log.load_kinds(session, TEXTS, after=after, limit=BATCH):
        yield event.seq, text_of(event.kind, event.content) if kinds.readable(event) else None


_INSERT: Final = (
    "INSERT INTO session_terms (tenant_id, customer_id, session_id, seq, terms)"
    " VALUES (%s, %s, %s, %s, array_to_tsvector(%s::text[]))"
    " ON CONFLICT (tenant_id, customer_id, session_id, seq) DO UPDATE SET terms = excluded.terms"
)


def _write(session: UUID, language: str, texts: Iterable[tuple[int, str | None]]) -> None:
    blinder, rows = blind.blinder(), []
    for seq, text in texts:
        found = terms.terms(text, language) if text else []
        if found:
            hashes = blinder.hashes(found)
            rows.append((current_tenant_id(), current_customer_id(), session, seq, hashes))
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)


# --- healing ---------------------------------------------------------------------------------------------


def lagging(*, past: UUID, limit: int, before: datetime | None = None) -> list[tuple[UUID, Scope]]:
    """(session, scope) of sessions whose index lags, across tenants, in the order of their ids after `past`.

    With `before`, also those last indexed before then.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT session_id, tenant_id, customer_id FROM app.sessions_to_index"
            "(%s, %s, coalesce(%s::timestamptz, '-infinity'), %s)",
            [past, terms.VERSION, before, limit],
        )
        return [(session, Scope(tenant, customer)) for session, tenant, customer in cursor]
