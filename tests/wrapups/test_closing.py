"""Closing a session owes its wrap-up, in the same transaction; the queue is only nudged."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from sessions import closing
from sessions.models import CloseReason, Session
from tests.conftest import Person
from tests.wrapups.stage import PLAN, job_of, talked
from wrapups import tasks
from wrapups.models import ClosingJob, JobKind, JobState


@pytest.fixture
def nudges(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is put on the queue."""
    put: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        tasks.do_owed_work, "apply_async", lambda args, kwargs, **how: put.append((args, kwargs))
    )
    return put


def test_a_substantive_session_owes_wrap_up_journal_and_mood(
    alice: Person, nudges: list[tuple[Any, ...]]
) -> None:
    session = talked(alice.scope, PLAN, journal=True)
    jobs = [job_of(alice.scope, session, kind) for kind in JobKind]
    assert [(job.state, job.attempt) for job in jobs] == [(JobState.QUEUED, 0)] * 3
    ids = {"tenant": str(alice.scope.tenant_id), "customer": str(alice.scope.customer_id)}
    assert nudges == [(tuple(str(job.id) for job in jobs), ids)]


def test_a_trivial_session_owes_none(alice: Person, nudges: list[tuple[Any, ...]]) -> None:
    assert job_of(alice.scope, talked(alice.scope, "Hi there!", "Hello!")).state == JobState.TRIVIAL
    assert nudges == []


def test_a_session_off_the_record_owes_none(alice: Person, nudges: list[tuple[Any, ...]]) -> None:
    assert job_of(alice.scope, talked(alice.scope, PLAN, off_record=True)).state == JobState.OFF_RECORD
    assert nudges == []


def test_the_job_is_not_there_when_the_close_is_undone(alice: Person, nudges: list[tuple[Any, ...]]) -> None:
    with scope(alice.scope):
        row = Session()
        row.save(force_insert=True)
        with transaction.atomic():
            closing.close(row.id, reason=CloseReason.ENDED, by="customer", now=clock.now())
            assert ClosingJob.objects.filter(session_id=row.id).exists()
            transaction.set_rollback(True)
        assert not ClosingJob.objects.filter(session_id=row.id).exists()
    assert nudges == []


def test_nothing_is_owed_for_an_erased_session(alice: Person) -> None:
    from sessions.signals import session_closed

    with scope(alice.scope):
        row = Session(close_reason="erased", closed_at=clock.now(), substantive=True)
        row.save(force_insert=True)
        session_closed.send(sender=Session, session=row, now=clock.now())
        assert not ClosingJob.objects.filter(session_id=row.id).exists()


def test_a_queue_that_is_down_costs_a_moment_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from memberintel.celery import app

    monkeypatch.setattr(app.conf, "broker_url", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(app, "_pool", None)
    slept: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", slept.append)
    tasks.nudge([uuid4()], Scope(uuid4(), uuid4()))
    assert slept == []  # nobody waits for it to come back
