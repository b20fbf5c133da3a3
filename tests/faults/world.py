"""A whole installation of a test's own: a database, a Redis, web processes, workers, and the clock they go by."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections

from memberintel.celery import app, broker_address
from memberintel.embedded import broker, children, place, private_folder, superuser_url
from memberintel.embedded.place import Place
from tests import services
from tests.faults.web import Browser, Reading, Webs, webs
from tests.waiting import PATIENCE, until

_WORKER = (
    "-m",
    "celery",
    "--app",
    "memberintel",
    "--quiet",
    "worker",
)


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
        status = self.process.wait(timeout=PATIENCE)
        assert status == 0, self.log.read_text()
        return self.log.read_text()


@dataclass
class World:
    """A database and a Redis, processes on them, and a model that follows a script."""

    variables: dict[str, str] = field(repr=False)
    address: str = field(repr=False)
    at: Place
    made: Webs
    redis: subprocess.Popen[bytes] | None = None
    started: list[Running] = field(default_factory=list)

    # --- processes ---------------------------------------------------------------------------------------

    def start(self, *command: str, process: str = "web", **variables: str) -> Running:
        """A process of the product, writing to a log of its own."""
        handle, log = tempfile.mkstemp(dir=self.at.folder, suffix=".log")
        with os.fdopen(handle, "wb") as output:
            started = subprocess.Popen(
                [sys.executable, *command],
                cwd=services.ROOT,
                env={**self.variables, "MEMBERINTEL_PROCESS": process, **variables},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(Running(started, Path(log)))
        return self.started[-1]

    def start_worker(self, at_once: int = 1, **variables: str) -> Running:
        """A worker that takes from all queues."""
        how = ("--queues", "default,wrapups", "--concurrency", str(at_once), "--loglevel", "WARNING")
        return self.start(*_WORKER, *how, process="worker", **variables)

    def start_redis(self) -> None:
        """Start it, and wait until it answers."""
        self.redis = broker.start(self.at)

    def stop_redis(self) -> None:
        """End it; what was on the queue is lost."""
        if self.redis is not None:
            children.stop(self.redis, broker.ENDINGS)
            self.redis = None

    def send(self, task: str, *args: object, **kwargs: object) -> None:
        """Put a task on the queue, as beat would."""
        with app.connection_for_write(broker_address(self.variables["REDIS_URL"])) as connection:
            app.send_task(task, args, kwargs, connection=connection)

    # --- the database ------------------------------------------------------------------------------------

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the superuser's, for whom there are no rules."""
        return psycopg.connect(self.address, autocommit=True)

    @cached_property
    def superuser(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The one that looks, as often as it takes."""
        return self.connect()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database holds, as its superuser sees it."""
        return list(self.superuser.execute(sql.encode(), values).fetchall())

    def count(self, sql: str, *values: object) -> int:
        """The one number a query gives."""
        return int(self.rows(sql, *values)[0][0])

    def change(self, sql: str, *values: object) -> None:
        """Do to the database what only its superuser may."""
        self.superuser.execute(sql.encode(), values)

    def expire_leases(self) -> None:
        """As if the time a killed process held its jobs for had passed."""
        self.change("UPDATE closing_jobs SET lease_until = now() WHERE lease_until > now()")

    # --- the clock ---------------------------------------------------------------------------------------

    @contextmanager
    def shut(self) -> Iterator[str]:
        """The path of a gate for steps of a script; it is opened by `open`, and at the end."""
        self.made.gate.unlink(missing_ok=True)
        try:
            yield str(self.made.gate)
        finally:
            self.open()

    def open(self) -> None:
        """Let what waits at the gate go on."""
        self.made.gate.touch()

    @contextmanager
    def time_is(self, moment: datetime) -> Iterator[None]:
        """While inside, it is that moment in every process of the world, and stays it."""
        self.set_clock(moment)
        try:
            yield
        finally:
            self.clock.unlink()

    def set_clock(self, moment: datetime) -> None:
        """Let it be that moment."""
        part = self.clock.with_suffix(".part")
        part.write_text(moment.isoformat())
        part.replace(self.clock)

    @property
    def clock(self) -> Path:
        """Where the moment stands; without the file the processes go by the real time. See `settings`."""
        return Path(self.variables["MEMBERINTEL_FAULTS_CLOCK"])

    # --- people ------------------------------------------------------------------------------------------

    def say(self, browser: Browser, text: str, web: int = 0, **more: Any) -> dict[str, Any]:
        """Somebody says something and hears the answer to its end; what the API said of the message."""
        answer = browser.say(self.made.started[web], text, **more)
        assert answer.status_code == 201, answer.text
        said: dict[str, Any] = answer.json()
        reading = Reading()
        reading.follow(browser, self.made.started[web], said["stream"])
        assert reading.end == ("done", {"outcome": "complete"}), reading.end
        return said

    def end(self, browser: Browser, session: str, web: int = 0) -> None:
        """The customer ends the session."""
        answer = browser.post(self.made.started[web], f"/api/v1/sessions/{session}/end/")
        assert answer.status_code == 200, answer.text

    def jobs(self, session: str | UUID) -> dict[str, str]:
        """The state of each job of the session, by its kind; there is one of each."""
        found = self.rows("SELECT kind, state FROM closing_jobs WHERE session_id = %s", session)
        assert len({kind for kind, _ in found}) == len(found), found
        return dict(found)

    def wrap_ups(self, session: str | UUID) -> int:
        """How many wrap-ups the session has."""
        return self.count("SELECT count(*) FROM session_logs WHERE session_id = %s", session)

    def until_written(self, *sessions: str) -> None:
        """Wait until all that is owed for them is done."""
        for session in sessions:
            until(
                lambda one=session: set(self.jobs(one).values()) == {"done"},  # type: ignore[misc]
                saw=lambda one=session: (self.jobs(one), self.said()),  # type: ignore[misc]
            )

    def said(self) -> list[str]:
        """The end of what each of its processes says."""
        logs = [each.log for each in self.started] + [each.log for each in self.made.started]
        return [log.read_text()[-1_000:] for log in logs]


@contextmanager
def world(name: str) -> Iterator[World]:
    """A world with Redis running and no process yet; the test's own database connection is on its database."""
    services.copy_template(name)
    address = superuser_url(Path(os.environ["MEMBERINTEL_TEST_DATA"]), name)
    with private_folder() as folder:
        at = place.choose(folder)
        variables = {
            **os.environ,
            **services.urls_for(name),
            "REDIS_URL": broker.url(at.sockets),
            "MEMBERINTEL_DATA": str(folder),
            "MEMBERINTEL_FAULTS_CLOCK": str(folder / "clock"),
            "MEMBERINTEL_LLM_SCRIPT": str(folder / "script.json"),
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
        }
        with webs(folder, variables) as made, connected_to(name):
            found = World(variables, address, at, made)
            found.start_redis()
            try:
                yield found
            finally:
                for running in found.started:
                    running.kill()
                found.superuser.close()
                found.stop_redis()


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    """The default connections of this process, of every thread, are on that database."""
    connection = connections["default"]
    entry, before = connection.settings_dict, dict(connection.settings_dict)
    connection.close()
    entry["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        entry.update(before)


def events_named(world: World, session: str | UUID, kind: str) -> int:
    """How many events of a kind the session has."""
    return world.count(
        "SELECT count(*) FROM session_events WHERE session_id = %s AND kind = %s", session, kind
    )
