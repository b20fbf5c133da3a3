"""The one way events are deleted: what it refuses, to whom, and that the log stays append-only beside it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, transaction

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.vault.destroy import destroy_customer_key
from sessions import actions, erasure, indexer, log, search, tasks
from sessions.erasure import NotAllowed, NothingErased
from sessions.log import SessionMissing
from sessions.models import EraseReason, SearchProgress, Session, SessionEvent, SessionTerms
from tests.conftest import Person
from tests.sessions.conftest import open_for, say
from wrapups.models import ClosingJob, JobState

type Login = Callable[[str], AbstractContextManager[None]]

LONG_AGO = timedelta(days=400)
PLAN = "We will run the zeppelin campaign for all yearly members from the first of March, at 20 % off."


def finished(person: Person, text: str = PLAN) -> UUID:
    """A closed session of theirs, indexed, with its wrap-up owed."""
    said = say(person, text, f"key-{uuid4()}")
    with scope(person.scope):
        actions.end(session=said.session)
        indexer.index(said.session)
    return said.session


def events(person: Person, session: UUID) -> int:
    with scope(person.scope):
        return SessionEvent.objects.filter(session_id=session).count()


def aged(person: Person, session: UUID) -> None:
    """As if it had been over for long."""
    then = clock.now() - LONG_AGO
    with scope(person.scope):
        Session.objects.filter(id=session).update(
            started_at=then, ended_at=then, last_activity_at=then, closed_at=then
        )


def settled(person: Person, session: UUID, state: JobState = JobState.DONE, **more: object) -> None:
    with scope(person.scope):
        ClosingJob.objects.filter(session_id=session).update(state=state, **more)


def a_month_ago() -> datetime:
    return clock.now() - timedelta(days=30)


def test_what_the_customer_asks_for_goes_with_its_terms_and_its_title(alice: Person) -> None:
    session = finished(alice)
    with scope(alice.scope):
        assert search.search("zeppelin")
        assert erasure.erase(session, EraseReason.CUSTOMER) == 3
        assert log.load(session) == []
        assert not SessionTerms.objects.filter(session_id=session).exists()
        assert not SearchProgress.objects.filter(session_id=session).exists()
        assert search.search("zeppelin") == []
        row = Session.objects.get(id=session)
        assert (row.title, row.erase_reason) == (None, EraseReason.CUSTOMER)
        assert row.erased_at is not None


def test_erasing_nothing_is_an_error(alice: Person) -> None:
    session = finished(alice)
    with scope(alice.scope):
        erasure.erase(session, EraseReason.CUSTOMER)
        with pytest.raises(NothingErased):
            erasure.erase(session, EraseReason.CUSTOMER)


@pytest.mark.parametrize("reason", EraseReason)
def test_nobody_elses_session(alice: Person, bob: Person, charlie: Person, reason: EraseReason) -> None:
    session = finished(alice)
    settled(alice, session)
    aged(alice, session)
    for other in (bob, charlie):
        with scope(other.scope):
            destroy_customer_key()  # so that `account` would hold for them
            for target in (session, uuid4()):
                with pytest.raises(SessionMissing):
                    erasure.erase(target, reason, before=a_month_ago())
    assert events(alice, session) == 3


def test_an_open_session_is_not_erased_for_a_reason_that_wants_a_closed_one(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        Session.objects.filter(id=session).update(off_record=True, last_activity_at=clock.now() - LONG_AGO)
        for reason in EraseReason:
            with pytest.raises(NotAllowed):
                erasure.erase(session, reason, before=a_month_ago())
        assert len(log.load(session)) == 1


@pytest.mark.parametrize("reason", ["", "customers", "CUSTOMER", "because", None])
def test_a_reason_nobody_knows(alice: Person, reason: str | None) -> None:
    session = finished(alice)
    with (
        scope(alice.scope),
        pytest.raises(DatabaseError, match="no such reason"),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT app.erase_session(%s, %s, NULL)", [session, reason])
    assert events(alice, session) == 3


def test_the_worker_cannot_say_that_the_customer_asked(alice: Person, login: Login) -> None:
    session = finished(alice)
    with login("worker"), scope(alice.scope), pytest.raises(NotAllowed):
        erasure.erase(session, EraseReason.CUSTOMER)
    assert events(alice, session) == 3


@pytest.mark.parametrize("role", ["web", "worker"])
def test_without_a_scope_there_is_no_erasure(alice: Person, login: Login, role: str) -> None:
    session = finished(alice)
    with login(role), pytest.raises(ProgrammingError, match="permission denied"):
        erasure.erase(session, EraseReason.CUSTOMER)
    assert events(alice, session) == 3


def test_off_the_record_must_be_true(alice: Person) -> None:
    session = finished(alice)
    with scope(alice.scope), pytest.raises(NotAllowed):
        erasure.erase(session, EraseReason.OFF_RECORD)
    assert events(alice, session) == 3


def test_retention_takes_what_is_old_and_owes_nothing(alice: Person, login: Login) -> None:
    session = finished(alice)
    settled(alice, session)
    aged(alice, session)
    with login("worker"), scope(alice.scope):
        assert erasure.erase(session, EraseReason.RETENTION, before=a_month_ago()) == 3
        assert Session.objects.get(id=session).erase_reason == EraseReason.RETENTION


def test_retention_leaves_what_is_younger_than_its_day(alice: Person) -> None:
    session = finished(alice)
    settled(alice, session)
    with scope(alice.scope):
        for before in (a_month_ago(), clock.now(), clock.now() + timedelta(days=9), None):
            with pytest.raises(NotAllowed):
                erasure.erase(session, EraseReason.RETENTION, before=before)
    assert events(alice, session) == 3


@pytest.mark.parametrize(
    ("state", "tries", "owed"),
    [
        (JobState.QUEUED, 0, True),
        (JobState.FAILED, 4, True),
        (JobState.FAILED, 5, False),
        (JobState.UNFUNDED, 0, False),  # closed more than a week ago: it is not made up for
        (JobState.TRIVIAL, 0, False),
        (JobState.DELETED, 0, False),
    ],
)
def test_retention_waits_for_what_is_owed(alice: Person, state: JobState, tries: int, owed: bool) -> None:
    session = finished(alice)
    aged(alice, session)
    settled(alice, session, state, daily_tries=tries)
    with scope(alice.scope):
        if owed:
            with pytest.raises(NotAllowed):
                erasure.erase(session, EraseReason.RETENTION, before=a_month_ago())
        else:
            assert erasure.erase(session, EraseReason.RETENTION, before=a_month_ago()) == 3
    assert events(alice, session) == (3 if owed else 0)


def test_an_account_is_erased_once_its_key_is_destroyed(alice: Person, bob: Person, login: Login) -> None:
    over, theirs = finished(alice), finished(bob)
    open_ = open_for(alice)
    with login("worker"), scope(alice.scope):
        with pytest.raises(NotAllowed):
            erasure.erase(over, EraseReason.ACCOUNT)
        destroy_customer_key()
        assert erasure.erase(over, EraseReason.ACCOUNT) == 3
        assert erasure.erase(open_, EraseReason.ACCOUNT) == 1
        row = Session.objects.get(id=open_)
        assert (row.close_reason, row.erase_reason) == ("erased", "account")
    assert events(bob, theirs) == 3


def test_events_are_deleted_in_no_other_way(alice: Person, login: Login) -> None:
    session = finished(alice)
    for role in ("web", "worker"):
        with login(role), scope(alice.scope):
            for statement in ("DELETE FROM session_events", "UPDATE session_events SET kind = 'x'"):
                with pytest.raises(ProgrammingError), transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(f"{statement} WHERE session_id = %s", [session])
            with pytest.raises(ProgrammingError), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL ROLE eraser")
    assert events(alice, session) == 3


def test_a_shell_takes_no_title(alice: Person) -> None:
    session = finished(alice)
    with scope(alice.scope):
        erasure.erase(session, EraseReason.CUSTOMER)
        row = Session.objects.get(id=session)
        row.title = "Zeppelins"
        with pytest.raises(IntegrityError, match="sessions_erased_is_a_shell"), transaction.atomic():
            row.save(update_fields=["title"])


def test_what_was_erased_does_not_lag_behind_in_search(alice: Person) -> None:
    session = finished(alice)
    with scope(alice.scope):
        erasure.erase(session, EraseReason.CUSTOMER)
        assert indexer.index(session) == 0
    before = UUID(int=session.int - 1)
    assert session not in [found for found, _ in indexer.lagging(past=before, limit=10_000)]


# --- off the record ----------------------------------------------------------------------------------------


def off_record(person: Person) -> UUID:
    with scope(person.scope):
        session = actions.open_session(close_previous=True, off_record=True)
    say(person, PLAN, f"key-{uuid4()}")
    return session


def test_a_session_off_the_record_leaves_nothing_when_it_closes(alice: Person) -> None:
    session = off_record(alice)
    with scope(alice.scope):
        assert len(log.load(session)) == 2
        assert Session.objects.get(id=session).title is None
        actions.end(session=session)
        row = Session.objects.get(id=session)
        assert log.load(session) == []
        assert (row.title, row.erase_reason, row.close_reason) == (None, "off_record", "ended")
        assert search.search("zeppelin") == []
        assert [job.state for job in ClosingJob.objects.filter(session_id=session)] == [JobState.OFF_RECORD]


def test_the_clock_closes_one_off_the_record_too(alice: Person, login: Login) -> None:
    session = off_record(alice)
    with scope(alice.scope):
        Session.objects.filter(id=session).update(
            ended_at=clock.now() - timedelta(hours=3), turn_lease_until=None
        )
    with login("worker"):
        ids = [str(session), str(alice.scope.tenant_id), str(alice.scope.customer_id)]
        assert tasks.close_due([[*ids, "idle"]]) == 1
    assert events(alice, session) == 0


def test_the_sweep_finishes_what_a_crash_left(alice: Person, login: Login) -> None:
    session = finished(alice)
    with scope(alice.scope):
        Session.objects.filter(id=session).update(off_record=True)
    with login("worker"):
        found = dict(erasure.unkept(limit=1_000))
        assert found[session] == alice.scope
        ids = {"tenant": str(alice.scope.tenant_id), "customer": str(alice.scope.customer_id)}
        assert tasks.erase(str(session), **ids) == 3
        assert tasks.erase(str(session), **ids) == 0
        assert session not in dict(erasure.unkept(limit=1_000))
    assert events(alice, session) == 0
