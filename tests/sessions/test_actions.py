"""Where a message goes, and what is refused; told by what the customer does."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections

from memberintel.lib import clock
from memberintel.lib.paging import HalfACursor
from memberintel.tenancy.context import scope
from sessions import actions, log, queries
from sessions.domain import events as kinds
from sessions.models import CloseReason, Session
from tests.conftest import Person
from tests.sessions.conftest import open_for, say


def _finish(person: Person, said: actions.Said) -> None:
    done = kinds.assistant_turn(text="an answer", tokens=2, model="m", provider="p")
    with scope(person.scope):
        log.append(said.session, done, turn=said.turn, lease=log.Lease.RELEASE)


def test_the_first_message_opens_a_session_with_a_title(alice: Person) -> None:
    said = say(alice, "How do I keep members after the first month?", "key-first-1")
    assert said.opened
    with scope(alice.scope):
        row = Session.objects.get(id=said.session)
        assert row.title == "How do I keep members after the first…"
        assert row.user_messages == 1
        assert row.started_at == row.ended_at


def test_the_same_message_sent_twice_is_one_event_and_one_turn(alice: Person) -> None:
    first = say(alice, "Only once", "key-twice-1")
    again = say(alice, "Only once", "key-twice-1")
    assert again.repeated
    assert (again.session, again.turn.id, again.seq) == (first.session, first.turn.id, first.seq)
    with pytest.raises(actions.KeyReused):
        say(alice, "Another text", "key-twice-1")


def test_the_same_message_sent_at_once_from_many_tabs_is_one(alice: Person) -> None:
    results: list[actions.Said | Exception] = []
    barrier = threading.Barrier(6)

    def send() -> None:
        barrier.wait()
        try:
            results.append(say(alice, "All at once", "key-at-once"))
        except Exception as error:
            results.append(error)
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(result, actions.Said) for result in results), results
    assert len({(result.session, result.seq) for result in results if isinstance(result, actions.Said)}) == 1


def test_a_second_message_while_an_answer_runs_is_refused(alice: Person) -> None:
    said = say(alice, "A question", "key-busy-1")
    with pytest.raises(log.TurnRunning) as refused:
        say(alice, "And another", "key-busy-2")
    assert refused.value.turn == said.turn.id


def test_after_two_hours_a_message_opens_a_successor_although_no_sweep_came(alice: Person) -> None:
    said = say(alice, "A question", "key-later-1")
    _finish(alice, said)
    with scope(alice.scope):
        ended = Session.objects.get(id=said.session).ended_at
        later = actions.say(text="Back again", client_key="key-later-2", now=ended + timedelta(hours=2))
        assert later.session != said.session
        old, new = Session.objects.get(id=said.session), Session.objects.get(id=later.session)
    assert old.close_reason == CloseReason.IDLE
    assert new.continues == said.session


def test_a_message_to_a_closed_session_continues_it(alice: Person) -> None:
    said = say(alice, "A question", "key-cont-1")
    with scope(alice.scope):
        actions.end(session=said.session)
    following = say(alice, "One more thing", "key-cont-2", session=said.session)
    assert following.opened
    with scope(alice.scope):
        assert Session.objects.get(id=following.session).continues == said.session


def test_a_message_to_a_closed_session_goes_to_the_open_one_and_says_so(alice: Person) -> None:
    closed = say(alice, "A question", "key-move-1")
    with scope(alice.scope):
        actions.end(session=closed.session)
    current = open_for(alice)
    moved = say(alice, "One more thing", "key-move-2", session=closed.session)
    assert moved.moved
    assert moved.session == current


def test_the_continue_button_ends_the_open_session_first(alice: Person) -> None:
    closed = say(alice, "A question", "key-button-1")
    with scope(alice.scope):
        actions.end(session=closed.session)
    current = open_for(alice)
    said = say(alice, "Go on", "key-button-2", session=closed.session, close_previous=True)
    with scope(alice.scope):
        assert Session.objects.get(id=current).close_reason == CloseReason.ENDED
        assert Session.objects.get(id=said.session).continues == closed.session


def test_a_message_to_an_archived_session_is_a_conflict_that_says_what_to_do(alice: Person) -> None:
    said = say(alice, "A question", "key-arch-1")
    with scope(alice.scope):
        actions.end(session=said.session)
        Session.objects.filter(id=said.session).update(archived_at=clock.now())
    with pytest.raises(actions.Conflict) as refused:
        say(alice, "Hello?", "key-arch-2", session=said.session)
    assert refused.value.code == "session_archived"


def test_another_customers_session_is_not_found(alice: Person, bob: Person, charlie: Person) -> None:
    said = say(alice, "Mine", "key-mine-1")
    for other in (bob, charlie):
        with pytest.raises(actions.NotFound):
            say(other, "Yours?", "key-theirs", session=said.session)
        with scope(other.scope):
            assert queries.get_session(said.session) is None
            with pytest.raises(actions.NotFound):
                actions.end(session=said.session)
            with pytest.raises(actions.NotFound):
                actions.retry(session=said.session, turn=said.turn.id, attempt=1)
            actions.leave(session=said.session)
    with scope(alice.scope):
        assert Session.objects.get(id=said.session).leaving_at is None


@pytest.mark.parametrize("text", ["", "  \n\t ", "\x00\x01", "\u2028 \x00"])
def test_nothing_to_send_is_refused(alice: Person, text: str) -> None:
    with pytest.raises(actions.EmptyMessage):
        say(alice, text, "key-empty")


def test_a_message_over_the_limit_is_refused_with_the_limit(alice: Person) -> None:
    with pytest.raises(actions.TooLong, match="message_too_long") as refused:
        say(alice, "a" * 100_001, "key-long")
    assert "100,000" in refused.value.text


@pytest.mark.parametrize("bad", ["be\x00fore", "be\ud800fore", "be\x07fore"])
def test_characters_no_text_has_are_removed_and_the_rest_is_kept(alice: Person, bad: str) -> None:
    said = say(alice, bad, "key-clean")
    with scope(alice.scope):
        assert kinds.text_of(log.load(said.session)[1]) == "before"


def test_opening_by_hand_names_the_open_session_or_ends_it(alice: Person) -> None:
    first = open_for(alice)
    with scope(alice.scope):
        with pytest.raises(actions.Conflict) as refused:
            actions.open_session()
        assert refused.value.extra == {"session": str(first)}
        assert actions.open_session(close_previous=True) != first
        assert not Session.objects.get(id=first).is_open


def test_a_second_click_on_retry_does_nothing(alice: Person) -> None:
    said = say(alice, "A question", "key-retry-1")
    failed = kinds.turn_failed(code="overloaded", retryable=True, message="Try again")
    with scope(alice.scope):
        log.append(said.session, failed, turn=said.turn, lease=log.Lease.RELEASE)
        first, began = actions.retry(session=said.session, turn=said.turn.id, attempt=1)
        assert (first.attempt, began) == (2, True)
        second, again = actions.retry(session=said.session, turn=said.turn.id, attempt=1)
        assert (second.attempt, again) == (2, False)


def test_an_answered_turn_cannot_be_retried(alice: Person) -> None:
    said = say(alice, "A question", "key-retry-2")
    _finish(alice, said)
    with scope(alice.scope), pytest.raises(actions.Conflict):
        actions.retry(session=said.session, turn=said.turn.id, attempt=1)


def test_whether_a_session_is_substantive_is_known_without_reading_it(alice: Person) -> None:
    short = say(alice, "thanks", "key-sub-1")
    with scope(alice.scope):
        assert not Session.objects.get(id=short.session).substantive
        actions.end(session=short.session)
    long = say(
        alice,
        "We lost eleven of our forty members this month and I would like to understand why that was and what to do.",
        "key-sub-2",
    )
    with scope(alice.scope):
        assert Session.objects.get(id=long.session).substantive


def test_the_list_pages_by_activity_and_a_half_cursor_is_refused(alice: Person) -> None:
    sessions = [open_for(alice) for _ in range(5)]
    with scope(alice.scope):
        seen = []
        page = queries.list_sessions(limit=2)
        while page:
            seen += [row.id for row in page]
            page = queries.list_sessions(before=page[-1].last_activity_at, before_id=page[-1].id, limit=2)
        assert seen == sessions[::-1]
        with pytest.raises(HalfACursor):
            queries.list_sessions(before=clock.now())
