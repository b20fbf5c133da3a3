"""Runs: recorded with what they counted, one at a time, taken over from a process that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models.functions import Now

from memberintel.lib import clock
from memberintel.usage import daily, runs
from memberintel.usage.models import Run
from tests import services
from tests.waiting import until

DAY = datetime(2026, 11, 30, 3, 10, tzinfo=UTC)


@pytest.fixture
def kind() -> str:
    """Runs of its own for each test."""
    return f"test_{uuid4().hex[:20]}"


def rows(kind: str) -> list[Run]:
    return list(Run.objects.filter(kind=kind).order_by("id"))


def lapse(kind: str) -> None:
    """As if the time a run is held for had passed."""
    Run.objects.filter(kind=kind, finished_at=None).update(lease_until=Now())


# --- one run ---------------------------------------------------------------------------------------------


def test_a_run_is_recorded_with_its_counts_and_length(kind: str) -> None:
    with runs.recorded(kind) as run:
        run.count("seen", 2)
        run.count("seen")
        run.count("kept")
        assert [row.finished_at for row in rows(kind)] == [None]
        assert runs.state(rows(kind)[0]) == "at work"
    (row,) = rows(kind)
    assert row.counts == {"seen": 3, "kept": 1}
    assert row.finished_at is not None
    assert (row.error, runs.state(row)) == ("", "finished")


def test_what_broke_is_kept_by_its_type_alone(kind: str) -> None:
    with pytest.raises(OSError, match="secrets"), runs.recorded(kind) as run:
        broken_by(run, OSError("the disk is full of secrets"))
    with pytest.raises(ExceptionGroup), runs.recorded(kind):
        raise ExceptionGroup("two", [OSError(), ExceptionGroup("one", [KeyError(), OSError()])])
    assert [(row.error, row.counts) for row in rows(kind)] == [
        ("OSError", {"seen": 1}),
        ("OSError, KeyError", {}),
    ]
    assert runs.state(rows(kind)[0]) == "broke"


def broken_by(run: runs.Recorded, error: Exception) -> None:
    run.count("seen")
    raise error


def test_one_at_a_time_of_a_kind(kind: str) -> None:
    with runs.recorded(kind):
        with pytest.raises(runs.AtWork), runs.recorded(kind):
            raise AssertionError("not reached")
        with runs.recorded(f"{kind}_other"), runs.recorded(kind, alone=False):
            assert len(rows(kind)) == 2
    with runs.recorded(kind):
        assert len(rows(kind)) == 3


def test_a_run_does_not_begin_inside_a_transaction(kind: str) -> None:
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic(), runs.recorded(kind):
        raise AssertionError("not reached")


def test_a_run_at_work_is_held_and_says_how_far_it_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RENEW_SECONDS", 0.02)
    with runs.recorded(kind) as run:
        later = Run.objects.filter(id=run.id, lease_until__gt=rows(kind)[0].lease_until)
        run.count("seen", 7)
        until(lambda: later.filter(counts={"seen": 7}).exists())


def test_a_run_that_was_taken_for_dead_writes_nothing_more(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RENEW_SECONDS", 0.02)
    with runs.recorded(kind) as run:
        Run.objects.filter(id=run.id).update(finished_at=clock.now(), error=runs.KILLED)
        until(lambda: run.lost)
        with pytest.raises(runs.LeaseLost):
            run.count("seen")
    (row,) = rows(kind)
    assert (row.error, row.counts) == (runs.KILLED, {})


# --- processes -------------------------------------------------------------------------------------------


@contextmanager
def stepper(kind: str) -> Iterator[subprocess.Popen[str]]:
    """A process that does a daily run with one step; see tests.usage.stepper."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.usage.stepper", kind],
        cwd=services.ROOT,
        env={**os.environ, "MEMBERINTEL_PROCESS": "worker"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_of_two_processes_at_once_one_does_the_work(kind: str) -> None:
    with stepper(kind) as one, stepper(kind) as two:
        said = {says(one): one, says(two): two}
        assert said.keys() == {"begun", "at work"}
        go_on(said["begun"])
        assert says(said["begun"]) == "done"
    assert [(row.counts, row.error) for row in rows(kind)] == [({"begun": 1, "ended": 1}, "")]


def test_a_process_killed_in_the_middle_is_followed_by_another(kind: str) -> None:
    with stepper(kind) as first:
        assert says(first) == "begun"
        until(lambda: rows(kind)[0].counts == {"begun": 1})
        first.kill()
        first.wait()
    assert daily.due(kind, clock.now())
    with stepper(kind) as early:  # as long as its lease stands nobody can know that it is dead
        assert says(early) == "at work"
    lapse(kind)
    assert runs.state(rows(kind)[0]) == "killed"
    with stepper(kind) as second:
        assert says(second) == "begun"
        go_on(second)
        assert says(second) == "done"
    assert [(row.error, row.counts) for row in rows(kind)] == [
        ("killed", {"begun": 1}),
        ("", {"begun": 1, "ended": 1}),
    ]
    assert not daily.due(kind, clock.now())


# --- the daily run ---------------------------------------------------------------------------------------


def good(run: runs.Recorded) -> None:
    """A step that counts one."""
    run.count("done")


def bad(run: runs.Recorded) -> None:
    """A step that breaks after it has counted one."""
    run.count("done")
    words = "a customer's secrets"
    raise ZeroDivisionError(words)


@pytest.fixture
def steps(kind: str, settings: Any) -> tuple[str, str, str]:
    """Three steps of which the second breaks."""
    names = (f"{kind}_1", f"{kind}_2", f"{kind}_3")
    here = "tests.usage.test_runs"
    settings.DAILY_STEPS = dict(zip(names, (f"{here}.good", f"{here}.bad", f"{here}.good"), strict=True))
    return names


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    before, clock.source = clock.source, lambda: moment
    try:
        yield
    finally:
        clock.source = before


def did(moment: datetime, *, at_once: bool = False) -> list[str]:
    """What the steps done at that moment end with."""
    with at(moment):
        return [step.error or "well" for step in daily.run(at_once=at_once)]


def test_one_step_that_breaks_does_not_stop_the_others(
    steps: tuple[str, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert did(DAY) == ["well", "ZeroDivisionError", "well"]
    assert [rows(kind)[0].counts for kind in steps] == [{"done": 1}] * 3
    assert "ZeroDivisionError" in caplog.text
    assert "customer" not in caplog.text


def test_what_ended_well_waits_for_the_next_day_and_what_broke_is_tried_again(
    steps: tuple[str, str, str],
) -> None:
    did(DAY)
    quarter = timedelta(minutes=15)
    assert did(DAY + quarter) == ["ZeroDivisionError"]
    assert did(DAY + 2 * quarter) == ["ZeroDivisionError"]
    assert did(DAY + 3 * quarter) == []
    assert did(DAY + timedelta(hours=23)) == []  # 02:10 of the next day belongs to this one
    assert len(did(DAY + timedelta(days=1))) == 3


def test_a_missed_day_is_made_good_whenever_the_clock_is_back(steps: tuple[str, str, str]) -> None:
    did(DAY)
    assert len(did(DAY + timedelta(days=1, hours=9))) == 3
    assert len(did(DAY + timedelta(days=9, hours=21))) == 3


def test_now_means_all_of_them(steps: tuple[str, str, str]) -> None:
    did(DAY)
    assert len(did(DAY + timedelta(minutes=1), at_once=True)) == 3


def test_the_command_says_what_each_step_counted(steps: tuple[str, str, str], settings: Any) -> None:
    settings.PROCESS = "worker"
    out = StringIO()
    with pytest.raises(CommandError, match=steps[1]):
        call_command("daily", stdout=out)
    first, second, third = out.getvalue().splitlines()
    assert first == f"{steps[0]}: done 1"
    assert second == f"{steps[1]}: broke (ZeroDivisionError); until then done 1"
    assert third == f"{steps[2]}: done 1"
    with runs.recorded(steps[0]):
        out = StringIO()
        with pytest.raises(CommandError):
            call_command("daily", "--now", stdout=out)
        assert f"{steps[0]}: another process is at it" in out.getvalue()


def test_the_command_needs_the_workers_login(settings: Any) -> None:
    settings.PROCESS = "web"
    with pytest.raises(CommandError, match="MEMBERINTEL_PROCESS=worker"):
        call_command("daily")


def test_the_steps_of_the_product_are_there(settings: Any) -> None:
    from django.utils.module_loading import import_string

    assert "wrap_up_backfill" in settings.DAILY_STEPS
    assert all(callable(import_string(path)) for path in settings.DAILY_STEPS.values())
