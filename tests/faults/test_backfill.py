"""A worker that is killed while conversations come in, and a queue that is down while they close.

The owed work is rows: the daily backfill, run by hand, ends at exactly one wrap-up per substantive session.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.conftest import make_person
from tests.faults.world import World, world
from tests.waiting import until

SAID = "Another {number} members left the club in this month, and I have decided to ring every one of them by Friday."
SESSIONS = 40


def write(world: World, name: str, first_day: int, sessions: int) -> Path:
    """A file of conversations of a few messages each; every fourth is small talk only."""
    begun = datetime(2025, 1, 6, 9, 0) + timedelta(days=first_day)  # noqa: DTZ001 (local to the file's zone)
    path = world.at.folder / f"{name}.json"
    path.write_text(
        json.dumps(
            {
                "format": "memberintel-transcript/1",
                "customer": "Ada",
                "advisor": "Ben",
                "timezone": "Europe/London",
                "sessions": [_session(begun + timedelta(days=day), day) for day in range(sessions)],
            }
        )
    )
    return path


def _session(at: datetime, number: int) -> dict[str, object]:
    said = "Thanks, bye!" if number % 4 == 3 else SAID.format(number=number + 2)
    answer = "Ring them in the morning, and write down what each of them says."
    return {
        "started_at": at.isoformat(),
        "messages": [
            {"role": "customer", "at": at.isoformat(), "text": said},
            {"role": "advisor", "at": (at + timedelta(minutes=1)).isoformat(), "text": answer},
        ],
    }


@pytest.fixture
def alone() -> Iterator[World]:
    """A world in which nothing has happened."""
    with world(f"backfill_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}") as made:
        yield made


@pytest.mark.slow
def test_the_backfill_writes_what_a_killed_worker_and_a_stopped_queue_left(alone: World) -> None:
    email = make_person(tier="pro", name="ada").user.email
    worker = alone.start_worker()
    first = write(alone, "first", 0, SESSIONS)
    importing = alone.start("manage.py", "import_conversations", str(first), "--customer", email)
    until(lambda: alone.count("SELECT count(*) FROM session_logs") > 0)
    worker.kill()
    assert "40 sessions imported" in importing.finish()
    written = alone.count("SELECT count(*) FROM session_logs")
    assert 0 < written < SESSIONS * 3 // 4, "the worker was to be killed in the middle"

    alone.stop_redis()
    second = write(alone, "second", 100, 4)
    without_queue = alone.start("manage.py", "import_conversations", str(second), "--customer", email)
    assert "4 sessions imported" in without_queue.finish()

    done = alone.count("SELECT count(*) FROM closing_jobs WHERE state = 'done'")
    alone.expire_leases()
    backfills = [alone.start("manage.py", "backfill_wrapups", "--now", process="worker") for _ in range(2)]
    said = [backfill.finish() for backfill in backfills]
    left = 3 * 33 - done  # wrap-up, journal and mood of each
    assert any(f"{left} due: {left} written." in out for out in said), said

    assert _wrapped_up(alone) == _substantive(alone)
    assert len(_substantive(alone)) == 33
    states = alone.rows("SELECT state, count(*) FROM closing_jobs GROUP BY state ORDER BY state")
    assert states == [("done", 3 * 33), ("trivial", 11)]
    assert alone.count("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL AND error = ''") >= 1


def _wrapped_up(world: World) -> list[object]:
    return [row[0] for row in world.rows("SELECT session_id FROM session_logs ORDER BY session_id")]


def _substantive(world: World) -> list[object]:
    sql = "SELECT id FROM sessions WHERE substantive AND closed_at IS NOT NULL ORDER BY id"
    found = [row[0] for row in world.rows(sql)]
    assert all(isinstance(each, UUID) for each in found)
    return found
