"""What a search costs among many messages of one customer, and what the index costs to make."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

import psycopg
from django.db import connection

from evals.performance.results import Figure, at_most, plain
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.vault import cipher, keyring
from sessions import indexer, log, search
from sessions.domain import events as kinds
from sessions.models import Session, SessionEvent

MESSAGES: Final = 100_000
SESSIONS: Final = 1_000
STRANGERS: Final = 4
ROUNDS: Final = 8

ENDINGS: Final = ("", "s", "ed", "ing", "er", "able", "ation")
SYLLABLES: Final = "ba co di fe gu ha jo ki lu me no pa qui ro sa te un vo wi xe ya zu".split()  # noqa: SIM905


def figures() -> Iterator[Figure]:
    """Searches for rare, usual and common words, several words, and phrases, by the time of their first page."""
    talk, who = _Talk(), _customer()
    strangers = [_customer() for _ in range(STRANGERS)]
    began = time.perf_counter()
    for other, many in ((who, MESSAGES), *((stranger, MESSAGES // 20) for stranger in strangers)):
        with scope(other):
            _fill(other, talk, many)
    written = time.perf_counter()
    for each in (who, *strangers):
        _index(each)
    indexed = time.perf_counter()
    _settle()
    texts = MESSAGES + STRANGERS * (MESSAGES // 20)
    yield plain("messages written for it", texts / (written - began), "a second")
    yield plain("messages put into the index", texts / (indexed - written), "a second")
    with connection.cursor() as cursor, scope(who):
        cursor.execute("SELECT pg_total_relation_size('session_terms') / 1048576.0")
        yield plain("the index's size", float(cursor.fetchone()[0]), "MiB")
    with scope(who):
        yield from _searches(talk)


def _searches(talk: _Talk) -> Iterator[Figure]:
    taken: list[float] = []
    for name, queries in talk.queries().items():
        times = [_time(query) for query in queries for _ in range(ROUNDS)]
        taken += times
        yield plain(f"search for {name}, median", statistics.median(times), "ms")
    p95 = statistics.quantiles(taken, n=20)[-1]
    yield at_most(f"search among {MESSAGES:,} messages of a customer, first page, p95", p95, 50, "ms")


def _time(query: str) -> float:
    began = time.perf_counter()
    found = search.find(query)
    taken = time.perf_counter() - began
    if not found.hits:
        raise RuntimeError("a search found nothing")
    return taken * 1000


class _Talk:
    """Made-up talk in which few words are common and most are rare, as in any language."""

    def __init__(self) -> None:
        self._dice = random.Random(7)  # noqa: S311  (no secret)
        words = {"".join(self._dice.choices(SYLLABLES, k=self._dice.randint(1, 4))) for _ in range(6_000)}
        stems = sorted(words)
        self._dice.shuffle(stems)
        self.words = [stem + self._dice.choice(ENDINGS) for stem in stems]
        self._weights = [1 / (rank + 3) for rank in range(len(self.words))]

    def text(self) -> str:
        """About a hundred words, in sentences."""
        words = self._dice.choices(self.words, self._weights, k=self._dice.randint(20, 180))
        return "\n".join(" ".join(words[n : n + 12]).capitalize() + "." for n in range(0, len(words), 12))

    def queries(self) -> dict[str, list[str]]:
        """Queries of each sort."""
        by_rank = self.words
        return {
            "a rare word": by_rank[3000:3200:20],
            "a usual word": by_rank[150:250:10],
            "a common word": by_rank[:10],
            "two words": [f"{a} {b}" for a, b in zip(by_rank[20:30], by_rank[100:110], strict=True)],
            "a phrase": [f'"{a} {b}"' for a, b in zip(by_rank[:10], by_rank[2:12], strict=True)],
        }


def _settle() -> None:
    """What autovacuum would have done long before a customer has so many messages."""
    with psycopg.connect(os.environ["DATABASE_URL_OWNER"], autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE sessions, session_events, session_terms, search_progress")


def _customer() -> Scope:
    tenant = Tenant.objects.create(name="bench", tier_id="pro")
    user = User.objects.create_user(f"bench-{uuid4().hex[:8]}@example.com", tenant=tenant)
    return Scope(tenant.id, user.id)


def _fill(who: Scope, talk: _Talk, messages: int) -> None:
    """Closed sessions of a hundred messages each, one a day, the last today."""
    each = max(1, messages * SESSIONS // MESSAGES)
    for number in range(each):
        began = clock.now() - timedelta(days=each - number, minutes=1)
        row = Session(id=uuid7(began), started_at=began, ended_at=began, last_activity_at=began, title="Talk")
        row.closed_at, row.close_reason, row.last_seq = began, "ended", messages // each
        row.save(force_insert=True)
        SessionEvent.objects.bulk_create(
            _event(who, row.id, seq, talk.text(), began) for seq in range(1, messages // each + 1)
        )


def _event(who: Scope, session: UUID, seq: int, text: str, at: datetime) -> SessionEvent:
    event = uuid7()
    draft = (
        kinds.user_message(text=text, tokens=100)
        if seq % 2
        else kinds.assistant_turn(text=text, tokens=100, model="bench", provider="bench")
    )
    aad = cipher.column_aad(who.tenant_id, who.customer_id, log.TABLE, log.COLUMN) + event.bytes
    sealed = cipher.seal_with(keyring.customer_key(), kinds.encode(draft.content), aad)
    return SessionEvent(
        session_id=session, seq=seq, id=event, kind=draft.kind, payload=dict(draft.payload), sealed=sealed,
        turn=event, attempt=1, created_at=at,
    )  # fmt: skip


def _index(who: Scope) -> None:
    with scope(who):
        for session in Session.objects.values_list("id", flat=True):
            indexer.index(session)
