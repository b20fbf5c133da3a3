"""What the first page says needs attention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memberintel import dashboard
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.usage.models import Run
from sessions import oversight as sessions
from sessions.models import Session
from tests.admin.scene import plant
from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person
from wrapups import oversight as wrapups
from wrapups.models import ClosingJob, JobKind, JobState
from wrapups.oversight import Owed

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
WELL = Owed(failed=0, waiting=0, overdue=0, oldest=None, codes=(), last_written=NOW)


@pytest.fixture(autouse=True)
def _counted_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much other tests have left."""
    monkeypatch.setattr(sessions, "MOST", 100_000)
    monkeypatch.setattr(wrapups, "MOST", 100_000)


def test_failed_jobs_are_named_with_their_codes(alice: Person) -> None:
    before = wrapups.owed(clock.now()).failed
    plant(alice)
    owed = wrapups.owed(clock.now())
    assert owed.failed == before + 1
    assert "overloaded" in dict(owed.codes)
    page = sign_in(make_staff()).get("/admin/").content.decode()
    assert "/admin/wrapups/closingjob/?state=failed" in page
    assert "overloaded (" in page


def test_a_job_that_waits_too_long_is_overdue(alice: Person) -> None:
    plant(alice)
    now = clock.now()
    with scope(alice.scope):
        before = wrapups.owed(now).overdue
        ClosingJob.objects.update(state=JobState.QUEUED, created_at=now - timedelta(hours=1))
        assert wrapups.owed(now).overdue == before + 1


def test_wrap_ups_without_a_budget_are_told(alice: Person) -> None:
    plant(alice)
    now = clock.now()
    with scope(alice.scope):
        before = wrapups.owed(now).unfunded
        ClosingJob.objects.filter(kind=JobKind.WRAP_UP).update(state=JobState.UNFUNDED)
        assert wrapups.owed(now).unfunded == before + 1
    owed = Owed(0, 0, 0, None, (), NOW, unfunded=2)
    assert (dashboard._unfunded(owed).state, dashboard._unfunded(WELL).state) == ("watch", "good")
    assert sign_in(make_staff()).get(dashboard._unfunded(owed).href).status_code == 200


def test_a_silent_session_that_was_not_closed_is_told(alice: Person) -> None:
    now = clock.now()  # one moment for both: sessions of other tests fall silent meanwhile
    before = sessions.not_closed(now)
    with scope(alice.scope):
        row = Session(ended_at=now - timedelta(hours=3))
        row.save(force_insert=True)
    assert sessions.not_closed(now) == before + 1


@pytest.mark.parametrize(
    ("owed", "state"),
    [
        (WELL, "good"),
        (Owed(3, 0, 0, None, (("overloaded", 3),), NOW), "watch"),
        (Owed(0, 5, 2, NOW - timedelta(hours=5), (), NOW - timedelta(hours=5)), "bad"),
        (Owed(0, 5, 2, NOW - timedelta(hours=5), (), NOW), "good"),  # it is catching up
        (Owed(0, 5, 2, NOW - timedelta(hours=5), (), None), "bad"),
    ],
)
def test_the_writers_health(owed: Owed, state: str) -> None:
    assert dashboard._writer(owed, NOW).state == state


@pytest.mark.parametrize(
    ("hours", "error", "finished", "state"),
    [
        (3, "", True, "good"),
        (30, "", True, "bad"),
        (3, "KeyUnavailable", True, "bad"),
        (3, "", False, "good"),
    ],
)
def test_the_daily_run(hours: int, error: str, finished: bool, state: str) -> None:
    began = NOW - timedelta(hours=hours)
    run = Run(kind="wrap_up_backfill", started_at=began, finished_at=began if finished else None, error=error)
    assert dashboard._clock([run], NOW).state == state


def test_before_the_first_run_one_is_told_when_it_comes() -> None:
    assert dashboard._clock([], NOW).state == "watch"


def test_more_than_is_looked_at_is_said_so() -> None:
    many = Owed(wrapups.MOST, 0, 0, None, (), NOW)
    assert dashboard._failed(many).value == f"{wrapups.MOST}+"
