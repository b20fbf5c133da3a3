"""What the event log costs beside raw statements of the same bytes on the same database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg
from django.db import connection

from evals.performance.results import Figure, alternate, at_most, plain
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.vault import cipher, keyring
from sessions import actions, log
from sessions.domain import events as kinds
from sessions.log import Lease, Turn
from sessions.models import Session, SessionEvent

QUESTION = "We lost eleven of our forty members this month and I would like to understand why. " * 3
ANSWER = "Look at what they did in their first week before anything else, then ask three of them. " * 12
ROUNDS = 300

FLOOR_TABLE = """
CREATE TABLE IF NOT EXISTS bench_floor (
  session_id uuid, seq bigint, id uuid, tenant_id uuid, customer_id uuid, turn uuid, attempt integer, kind text,
  payload jsonb, sealed bytea, created_at timestamptz, PRIMARY KEY (session_id, seq))
"""
FLOOR_INSERT = "INSERT INTO bench_floor VALUES (%s, %s, %s, %s, %s, %s, 1, %s, %s::jsonb, %s, %s)"


def figures() -> Iterator[Figure]:
    """Persisting a turn at 10 and at 100,000 events; loading 5,000 events."""
    who = customer()
    with scope(who), _floor() as floor:
        small, large = session_of(who, 10), session_of(who, 100_000)
        raw, ours = alternate(_raw_turn(floor, who), _our_turn(small), ROUNDS)
        _, late = alternate(_raw_turn(floor, who), _our_turn(large), ROUNDS)
        yield plain("two raw INSERT + COMMIT of the same bytes", raw, "ms")
        yield at_most("persist a turn, against two raw commits", ours / raw, 4.5, "x")
        yield at_most("persist a turn at 100,000 events, against at 10", late / ours, 1.2, "x")
        full = session_of(who, 5_000)
        select, load = alternate(_select(full), lambda: log.load(full), 20)
        yield plain("SELECT of 5,000 events through the same cursor", select, "ms")
        yield at_most("load 5,000 events, opened and decoded, against their SELECT", load / select, 2, "x")


def customer() -> Scope:
    """The scope of a fresh customer."""
    tenant = Tenant.objects.create(name="bench", tier_id="pro")
    user = User.objects.create_user(f"bench-{uuid4().hex[:8]}@example.com", tenant=tenant)
    return Scope(tenant.id, user.id)


@contextmanager
def _floor() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_URL_OWNER"]) as floor:
        floor.execute(FLOOR_TABLE)
        floor.commit()
        try:
            yield floor
        finally:
            floor.rollback()
            floor.execute("DROP TABLE bench_floor")
            floor.commit()


def session_of(who: Scope, events: int) -> UUID:
    """A session with that many sealed events, half of them answers of a usual length."""
    session = actions.open_session(close_previous=True)
    key, aad = (
        keyring.customer_key(),
        cipher.column_aad(who.tenant_id, who.customer_id, log.TABLE, log.COLUMN),
    )
    drafts = (kinds.user_message(text=QUESTION, tokens=50), _answer())
    batch: list[SessionEvent] = []
    for seq in range(2, events + 1):
        draft, event = drafts[seq % 2], uuid7()
        sealed = cipher.seal_with(key, kinds.encode(draft.content), aad + event.bytes)
        batch.append(
            SessionEvent(session_id=session, seq=seq, id=event, kind=draft.kind, payload=dict(draft.payload),
                         sealed=sealed, turn=event, attempt=1, created_at=clock.now())
        )  # fmt: skip
    SessionEvent.objects.bulk_create(batch, batch_size=2_000)
    Session.objects.filter(id=session).update(last_seq=events)
    return session


def _answer() -> kinds.Draft:
    return kinds.assistant_turn(text=ANSWER, tokens=220, model="bench", provider="bench")


def _our_turn(session: UUID) -> Callable[[], object]:
    def persist() -> None:
        turn = Turn(uuid7(), 1, "bench")
        question = kinds.user_message(text=QUESTION, tokens=50)
        log.append(session, question, turn=turn, lease=Lease.TAKE, client_key=str(turn.id))
        log.append(session, _answer(), turn=turn, lease=Lease.RELEASE)

    Session.objects.filter(id=session).update(closed_at=None, close_reason=None, imported=True)
    return persist


def _raw_turn(floor: psycopg.Connection, who: Scope) -> Callable[[], object]:
    session = uuid4()
    numbers = iter(range(1, 10**9))

    def persist() -> None:
        turn = uuid7()
        for draft in (kinds.user_message(text=QUESTION, tokens=50), _answer()):
            sealed = kinds.encode(draft.content) + bytes(29)
            row = (session, next(numbers), uuid7(), who.tenant_id, who.customer_id, turn, draft.kind,
                   '{"v":1}', sealed, clock.now())  # fmt: skip
            floor.execute(FLOOR_INSERT, row)
            floor.commit()

    return persist


def _select(session: UUID) -> Callable[[], object]:
    sql = (
        "SELECT seq, id, kind, turn, attempt, payload, sealed, created_at FROM session_events"
        " WHERE tenant_id = app.current_tenant() AND session_id = %s ORDER BY seq"
    )

    def read() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, [session])
            cursor.fetchall()

    return read
