"""Closing: one wins; silence, goodbye and the customer each have their rule."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, connections, transaction

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.vault.destroy import destroy_customer_key
from sessions import actions, closing, lease, log, tasks
from sessions.domain import events as kinds
from sessions.models import CloseReason, Session
from sessions.signals import session_closed
from tests.conftest import Person
from tests.sessions.conftest import open_for, say

TWO_HOURS = timedelta(hours=2)


def test_two_closers_one_close(alice: Person) -> None:
    session = open_for(alice)
    won: list[bool] = []
    barrier = threading.Barrier(8)

    def close() -> None:
        with scope(alice.scope):
            barrier.wait()
            won.append(closing.close(session, reason=CloseReason.ENDED, by="customer", now=clock.now()))
        connections.close_all()

    threads = [threading.Thread(target=close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]
    with scope(alice.scope):
        assert [event.kind for event in log.load(session)].count(kinds.SESSION_CLOSED) == 1


def test_who_hears_of_the_close_hears_it_inside_the_transaction(alice: Person) -> None:
    session = open_for(alice)

    def refuse(**kwargs: object) -> None:
        raise ZeroDivisionError

    session_closed.connect(refuse)
    try:
        with scope(alice.scope), pytest.raises(ZeroDivisionError):
            closing.close(session, reason=CloseReason.ENDED, by="customer", now=clock.now())
    finally:
        session_closed.disconnect(refuse)
    with scope(alice.scope):
        assert Session.objects.get(id=session).is_open
        assert len(log.load(session)) == 1


@pytest.mark.parametrize(
    ("silence", "closes"), [(TWO_HOURS - timedelta(seconds=1), False), (TWO_HOURS, True)]
)
def test_silence_of_exactly_two_hours_closes(alice: Person, silence: timedelta, closes: bool) -> None:
    said = _answered(alice, "a question of some length", "key-silence")
    with scope(alice.scope):
        last = Session.objects.get(id=said).ended_at
        assert closing.close(said, reason=CloseReason.IDLE, by="clock", now=last + silence) is closes


def test_a_running_turn_holds_off_silence_and_goodbye_but_not_the_customer(alice: Person) -> None:
    said = say(alice, "a question", "key-running")
    later = clock.now() + timedelta(days=1)
    with scope(alice.scope):
        actions.leave(session=said.session)
        for reason in (CloseReason.IDLE, CloseReason.STREAM_CLOSED):
            assert not closing.close(said.session, reason=reason, by="clock", now=later)
        assert closing.close(said.session, reason=CloseReason.ENDED, by="customer", now=later)
        with pytest.raises(log.LeaseLost):
            lease.renew(said.session, said.turn)


def test_a_goodbye_closes_after_the_grace_unless_a_page_comes_back(alice: Person) -> None:
    session = open_for(alice)
    now = clock.now()
    with scope(alice.scope):
        actions.leave(session=session, now=now)
        assert not closing.close(
            session, reason=CloseReason.STREAM_CLOSED, by="clock", now=now + timedelta(minutes=9)
        )
        actions.stay()
        assert not closing.close(
            session, reason=CloseReason.STREAM_CLOSED, by="clock", now=now + timedelta(hours=1)
        )
        actions.leave(session=session, now=now)
        assert closing.close(
            session, reason=CloseReason.STREAM_CLOSED, by="clock", now=now + timedelta(minutes=10)
        )


def test_a_message_takes_a_goodbye_back(alice: Person) -> None:
    session = _answered(alice, "hello", "key-goodbye-1")
    with scope(alice.scope):
        actions.leave(session=session)
    _answered(alice, "still here", "key-goodbye-2")
    with scope(alice.scope):
        assert Session.objects.get(id=session).leaving_at is None


def test_the_sweep_names_what_is_due_across_tenants_by_ids_alone(
    alice: Person, bob: Person, charlie: Person
) -> None:
    idle, left, fresh = open_for(alice), open_for(bob), open_for(charlie)
    now = clock.now()
    with scope(alice.scope):
        Session.objects.filter(id=idle).update(ended_at=now - TWO_HOURS)
    with scope(bob.scope):
        actions.leave(session=left, now=now - timedelta(minutes=11))
    due = {row[0]: row for row in closing.due(now=now, idle=True, limit=10_000)}
    assert due[idle] == (idle, alice.scope.tenant_id, alice.scope.customer_id, CloseReason.IDLE)
    assert due[left][3] == CloseReason.STREAM_CLOSED
    assert fresh not in due
    assert idle not in {row[0] for row in closing.due(now=now, idle=False, limit=10_000)}


def test_the_sweep_hands_out_what_is_due_some_at_a_time(
    alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[list[list[str]]] = []
    monkeypatch.setattr(tasks, "TOGETHER", 1)
    monkeypatch.setattr(tasks.close_due, "delay", handed.append)
    mine = {str(_silent(alice)), str(_silent(bob))}
    assert tasks.sweep() == len(handed)
    assert all(len(some) == 1 for some in handed)
    assert mine <= {some[0][0] for some in handed}


def test_of_many_at_once_each_is_closed_by_its_own_lights(
    alice: Person, bob: Person, charlie: Person
) -> None:
    silent, locked, spoke = _silent(alice), _silent(bob), _silent(charlie)
    due = [
        [str(session), str(person.scope.tenant_id), str(person.scope.customer_id), "idle"]
        for session, person in ((locked, bob), (spoke, charlie), (silent, alice))
    ]
    with scope(charlie.scope):
        Session.objects.update(ended_at=clock.now())  # a message came after all
    with scope(bob.scope):
        destroy_customer_key()
    assert tasks.close_due(due) == 1
    assert not _open(alice, silent)
    assert _open(bob, locked)
    assert _open(charlie, spoke)
    assert tasks.close_due(due) == 0


def test_only_a_close_by_the_sweep_does_not_wait_for_the_disk(alice: Person, bob: Person) -> None:
    for person, wait in ((alice, True), (bob, False)):
        session = _silent(person)
        with scope(person.scope), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            closing.close(session, reason=CloseReason.IDLE, by="clock", now=clock.now(), wait=wait)
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone()[0] == ("on" if wait else "off")


def _silent(person: Person) -> UUID:
    session = open_for(person)
    with scope(person.scope):
        Session.objects.filter(id=session).update(ended_at=clock.now() - TWO_HOURS)
    return session


def _open(person: Person, session: UUID) -> bool:
    with scope(person.scope):
        return Session.objects.get(id=session).is_open


def _answered(person: Person, text: str, key: str) -> UUID:
    said = say(person, text, key)
    with scope(person.scope):
        done = kinds.assistant_turn(text="an answer", tokens=2, model="m", provider="p")
        log.append(said.session, done, turn=said.turn, lease=log.Lease.RELEASE)
    return said.session
