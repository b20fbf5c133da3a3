"""The log: gapless, append-only, one writer a turn, sealed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from memberintel.tenancy.context import scope
from memberintel.vault.errors import CannotOpen
from sessions import lease, log
from sessions.domain import events as kinds
from sessions.log import Lease, Turn
from sessions.models import Session, SessionEvent
from tests.conftest import Person
from tests.sessions.conftest import open_for, say
from tests.waiting import PATIENCE

NOTE = kinds.pending_state(text="more")


def test_the_first_event_of_a_session_says_that_it_opened(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        events = log.load(session)
    assert [(event.seq, event.kind) for event in events] == [(1, kinds.SESSION_OPENED)]


def test_what_is_appended_comes_back_opened_and_in_order(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, kinds.pending_state(text="één"))
        log.append(session, kinds.pending_state(text="zwei\n"))
        events = log.load(session)
    assert [kinds.text_of(event) for event in events[1:]] == ["één", "zwei\n"]
    assert [event.seq for event in events] == [1, 2, 3]


def test_the_table_holds_no_text(alice: Person) -> None:
    said = say(alice, "The zebra tariff is secret", "key-zebra-1")
    with scope(alice.scope), connection.cursor() as cursor:
        cursor.execute(
            "SELECT payload::text || encode(sealed, 'escape') FROM session_events WHERE session_id = %s",
            [said.session],
        )
        stored = "".join(row[0] for row in cursor)
    assert "zebra" not in stored


def test_a_stranger_and_a_colleague_find_no_events(alice: Person, bob: Person, charlie: Person) -> None:
    said = say(alice, "Only mine", "key-only-mine")
    for other in (bob, charlie):
        with scope(other.scope):
            assert log.load(said.session) == []
            with pytest.raises(log.SessionMissing):
                log.append(said.session, NOTE)


@pytest.mark.parametrize("role", ["web", "worker", "owner"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session_events SET kind = 'x' WHERE session_id = %s",
        "DELETE FROM session_events WHERE session_id = %s",
        "TRUNCATE session_events",
    ],
)
def test_no_login_changes_or_removes_an_event(
    alice: Person, login: Callable[[str], AbstractContextManager[None]], role: str, statement: str
) -> None:
    session = open_for(alice)
    parameters = [session] if "%s" in statement else None
    refused = pytest.raises(DatabaseError, match=r"permission denied|append-only")
    with login(role), scope(alice.scope), connection.cursor() as cursor, refused:
        cursor.execute(statement, parameters)
    with scope(alice.scope):
        assert len(log.load(session)) == 1


def test_a_closed_session_takes_nothing_more(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        Session.objects.filter(id=session).update(closed_at="2026-01-01T00:00Z", close_reason="ended")
        with pytest.raises(log.SessionClosed):
            log.append(session, NOTE)


def test_a_rolled_back_append_leaves_no_gap(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        with transaction.atomic():
            log.append(session, NOTE)
            transaction.set_rollback(True)
        assert log.append(session, NOTE) == 2


def test_the_same_client_key_is_one_event(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, NOTE, client_key="key-once")
        with pytest.raises(log.KeyTaken):
            log.append(session, NOTE, client_key="key-once")
        assert log.append(session, NOTE) == 3


def test_two_customers_may_choose_the_same_client_key(alice: Person, charlie: Person) -> None:
    for person in (alice, charlie):
        assert say(person, "hello there", "key-same-for-both").seq == 2


# --- the lease -------------------------------------------------------------------------------------------


def test_one_turn_at_a_time(alice: Person) -> None:
    said = say(alice, "first question", "key-lease-1")
    other = Turn(uuid4(), 1, "another process")
    with scope(alice.scope):
        with pytest.raises(log.TurnRunning) as refused:
            log.append(
                said.session, kinds.user_message(text="second", tokens=1), turn=other, lease=Lease.TAKE
            )
        assert refused.value.turn == said.turn.id


def test_a_process_that_lost_its_lease_writes_nothing_more(alice: Person) -> None:
    said = say(alice, "first question", "key-lease-2")
    stranger = Turn(said.turn.id, 1, "another process")
    next_attempt = Turn(said.turn.id, 2, said.turn.owner)
    with scope(alice.scope):
        for not_holding in (stranger, next_attempt):
            with pytest.raises(log.LeaseLost):
                log.append(said.session, NOTE, turn=not_holding, lease=Lease.HOLD)
        _lapse(said.session)
        with pytest.raises(log.LeaseLost):
            log.append(said.session, NOTE, turn=said.turn, lease=Lease.HOLD)
        with pytest.raises(log.LeaseLost):
            lease.renew(said.session, said.turn)


def test_the_last_event_of_a_turn_gives_the_lease_back(alice: Person) -> None:
    said = say(alice, "first question", "key-lease-3")
    done = kinds.assistant_turn(text="an answer", tokens=2, model="m", provider="p")
    with scope(alice.scope):
        log.append(said.session, done, turn=said.turn, lease=Lease.RELEASE)
        with pytest.raises(log.LeaseLost):
            log.append(said.session, NOTE, turn=said.turn, lease=Lease.HOLD)
    assert say(alice, "second question", "key-lease-4").session == said.session


def test_only_one_caller_begins_the_next_attempt(alice: Person) -> None:
    said = say(alice, "first question", "key-lease-5")
    following = Turn(said.turn.id, 2, "another process")
    with scope(alice.scope):
        assert not lease.take_again(said.session, following), "while the first runs"
        _lapse(said.session)
        assert lease.take_again(said.session, following)
        assert not lease.take_again(said.session, following)


def _lapse(session: UUID) -> None:
    Session.objects.filter(id=session).update(turn_lease_until="2026-01-01T00:00Z")


# --- damage and lost keys --------------------------------------------------------------------------------


def test_a_damaged_event_is_shown_as_such_and_the_rest_is_there(
    alice: Person, login: Callable[[str], AbstractContextManager[None]]
) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, kinds.pending_state(text="whole"))
        row = SessionEvent(
            session_id=session,
            seq=3,
            id=uuid4(),
            kind="pending_state",
            payload={"v": 1},
            sealed=b"\x01" + bytes(40),
            created_at="2026-01-01T00:00Z",
        )
        row.save(force_insert=True)
        events = log.load(session)
    assert [kinds.readable(event) for event in events] == [True, True, False]


def test_an_event_moved_to_another_row_does_not_open(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, kinds.pending_state(text="approve the refund"))
        sealed = SessionEvent.objects.get(session_id=session, seq=2).sealed
        SessionEvent(
            session_id=session,
            seq=3,
            id=uuid4(),
            kind="pending_state",
            payload={"v": 1},
            sealed=sealed,
            created_at="2026-01-01T00:00Z",
        ).save(force_insert=True)
        assert not kinds.readable(log.load(session)[2])


def test_without_the_key_there_is_an_error_and_never_an_empty_history(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = say(alice, "precious words", "key-precious")

    def unavailable(owner: object) -> object:
        raise CannotOpen("no key")

    monkeypatch.setattr("memberintel.vault.keyring.key_of", unavailable)
    with scope(alice.scope):
        with pytest.raises(CannotOpen):
            log.load(said.session)
        with pytest.raises(CannotOpen):
            log.append(said.session, NOTE)
    monkeypatch.undo()
    with scope(alice.scope):
        assert len(log.load(said.session)) == 2


# --- many at once ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hundred_appends_from_four_processes_are_gapless(alice: Person) -> None:
    session = open_for(alice)
    ids = [str(alice.scope.tenant_id), str(alice.scope.customer_id), str(session)]
    command = [sys.executable, "-m", "tests.sessions.appender", *ids, "50"]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(timeout=PATIENCE) for process in processes] == [0, 0, 0, 0]
    with scope(alice.scope):
        events = log.load(session)
    assert [event.seq for event in events] == list(range(1, 202))
    assert len({kinds.text_of(event) for event in events[1:]}) == 200
