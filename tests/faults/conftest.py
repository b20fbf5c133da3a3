"""A database and a Redis that a test may stop and start, and people in them."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from signal import SIGQUIT
from typing import LiteralString

import psycopg
import pytest
from django.db import connections

from memberintel import env
from memberintel.embedded import broker, children, place, postgresql, private_folder
from memberintel.embedded.folder import LOGINS
from memberintel.embedded.place import Place
from tests import services


@dataclass
class Own:
    """Servers of the test's own."""

    at: Place
    passwords: dict[str, str] = field(default_factory=dict)
    database: subprocess.Popen[bytes] | None = None
    redis: subprocess.Popen[bytes] | None = None

    def start_redis(self) -> None:
        """Start it, and wait until it answers."""
        self.redis = broker.start(self.at)

    def stop_redis(self) -> None:
        """End it; what it held is lost."""
        if self.redis is not None:
            children.stop(self.redis, broker.ENDINGS)
            self.redis = None

    def start_database(self) -> None:
        """Start it, with its roles, and wait until it answers."""
        self.database = postgresql.start(self.at, self.passwords["postgres"], fsync=True)

    def crash_database(self) -> None:
        """End it as a failing machine would: nobody's transaction is finished."""
        if self.database is not None:
            connections["default"].close()  # the test's own, which has no pool to notice
            children.stop(self.database, ((SIGQUIT, 10.0),))
            self.database = None

    def variables(self) -> dict[str, str]:
        """What makes a process use what runs of them."""
        given = {"REDIS_URL": broker.url(self.at.sockets)} if self.redis else {}
        if self.database:
            for login in LOGINS:
                address = postgresql.url(login, self.passwords[login], self.at.sockets)
                given[f"DATABASE_URL_{login.upper()}"] = address
        return {**os.environ, **given}


@pytest.fixture
def own() -> Iterator[Own]:
    """None of them runs yet; all that were started are stopped at the end."""
    with private_folder() as folder:
        made = Own(place.choose(folder), {login: secrets.token_hex(16) for login in (*LOGINS, "postgres")})
        try:
            yield made
        finally:
            made.stop_redis()
            made.crash_database()


@contextmanager
def migrated(own: Own) -> Iterator[None]:
    """Its database is ready for the product, and the default connection is on it."""
    own.start_database()
    postgresql.make_roles(own.at, own.passwords)
    # It must be back from a crash before the lease of a turn runs out. Of a process that ended the system keeps all
    # that was written, so nobody has to wait for the disk; and after a checkpoint little is to be done again.
    _told(own, "ALTER SYSTEM SET fsync = off")
    _told(own, "SELECT pg_reload_conf()")
    variables = own.variables()
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=services.ROOT,
        env={**variables, "MEMBERINTEL_PROCESS": "owner"},
        check=True,
    )
    _told(own, "CHECKPOINT")
    connection = connections["default"]
    entry, before = connection.settings_dict, dict(connection.settings_dict)
    connection.close()
    entry.update(_where(variables["DATABASE_URL_WEB"]))
    try:
        yield
    finally:
        connection.close()
        entry.update(before)


def _told(own: Own, command: LiteralString) -> None:
    """A command of its superuser's."""
    superuser = postgresql.url("postgres", own.passwords["postgres"], own.at.sockets, "postgres")
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(command)


def _where(address: str) -> dict[str, object]:
    os.environ["MEMBERINTEL_FAULTS_URL"] = address
    try:
        entry = env.database("MEMBERINTEL_FAULTS_URL")
    finally:
        del os.environ["MEMBERINTEL_FAULTS_URL"]
    return {name: entry[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT") if name in entry}
