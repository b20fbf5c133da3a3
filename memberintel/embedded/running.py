"""The services of a data folder, for as long as a `with` block runs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import redis

from memberintel.embedded import broker, children, place, postgresql
from memberintel.embedded.folder import LOGINS, DataFolder, lock
from memberintel.env import Misconfigured

NEEDED_LOGINS = ("WEB", "WORKER", "OWNER")
JOIN_SECONDS = 60.0


@contextmanager
def services(
    data: Path, *, env: Mapping[str, str] | None = None, fsync: bool = True, join: bool = True
) -> Iterator[dict[str, str]]:
    """Yield the variables with which every process of the product finds its database, Redis and keys.

    What env (default: os.environ) already names is used as it is; the rest is started here and stopped at the
    end. If another process runs the services of this folder they are joined, or refused by name if join is
    False. fsync=False is for tests: faster, and lost when the machine stops. Raises Misconfigured with a
    sentence that says what is missing and what to set. Enter it from the main thread: the services die with
    the thread that started them.
    """
    given = _given(os.environ if env is None else env)
    folder = DataFolder(data)
    if _take_or_join(folder, join=join):
        try:
            with _started(folder, given, fsync=fsync) as environment:
                folder.announce(environment)
                yield environment
        finally:
            folder.free()
    else:
        yield _joined(folder) | given


def superuser_url(data: Path, database: str = "postgres") -> str:
    """The address of the embedded superuser, for tests that make databases. No process of the product has it."""
    at = data.resolve()
    word = DataFolder(at).known().passwords["postgres"]
    return postgresql.url("postgres", word, place.socket_folder(at), database)


@contextmanager
def private_folder() -> Iterator[Path]:
    """A fresh data folder, removed at the end. Those that killed processes left behind are removed first."""
    parent = Path(tempfile.gettempdir())
    for mark in parent.glob("memberintel-private-*/private"):
        with suppress(OSError):  # another user's, or someone else clears up too
            if mark.lstat().st_uid == os.geteuid() and (held := lock(mark)) is not None:
                place.remove(mark.parent.resolve())
                os.close(held)
    data = Path(tempfile.mkdtemp(prefix="memberintel-private-", dir=parent)).resolve()
    held = lock(data / "part")
    (data / "part").rename(data / "private")  # locked before it has its name: never taken for left behind
    try:
        yield data
    finally:
        place.remove(data)
        if held is not None:
            os.close(held)


def _given(env: Mapping[str, str]) -> dict[str, str]:
    """The variables a person has set; all the databases a process may need, or none."""
    names = [f"DATABASE_URL_{login.upper()}" for login in LOGINS]
    databases = {name: env[name] for name in names if env.get(name)}
    missing = [f"DATABASE_URL_{login}" for login in NEEDED_LOGINS if f"DATABASE_URL_{login}" not in databases]
    if databases and missing:
        raise Misconfigured(
            f"{' and '.join(missing)} must be set too, beside {' and '.join(databases)} (`make roles` prints the "
            "SQL that makes the logins). Or set none of them, and the embedded PostgreSQL is used."
        )
    others = ("REDIS_URL", "SECRET_KEY", "MEMBERINTEL_KEK", "MEMBERINTEL_KEK_FILE", "MEMBERINTEL_EMBEDDED")
    return databases | {name: env[name] for name in others if env.get(name)}


def _take_or_join(folder: DataFolder, *, join: bool) -> bool:
    """True when the lock is ours, False when a running process can be joined."""
    deadline = time.monotonic() + JOIN_SECONDS
    while not folder.take():
        if not join:
            raise Misconfigured(
                f"MemberIntel already runs on {folder.path} (process {folder.holder()}). "
                "Stop it, or set MEMBERINTEL_DATA to another folder."
            )
        if folder.announced():
            return False
        if time.monotonic() > deadline:
            raise Misconfigured(
                f"Process {folder.holder()} holds {folder.path} and has not started its services. "
                "Stop it, or set MEMBERINTEL_DATA to another folder."
            )
        time.sleep(0.05)
    return True


def _joined(folder: DataFolder) -> dict[str, str]:
    note = folder.announced()
    if note is None:
        raise Misconfigured(
            f"The process that ran the services of {folder.path} has just ended. Start again."
        )
    return note["environment"]


@contextmanager
def _started(folder: DataFolder, given: dict[str, str], *, fsync: bool) -> Iterator[dict[str, str]]:
    _check_reachable(given)
    own_database, own_redis = "DATABASE_URL_WEB" not in given, "REDIS_URL" not in given
    at = place.choose(folder.path) if own_database or own_redis else None
    kept = folder.secrets(used=at is not None and own_database and at.cluster.exists())
    environment = {"MEMBERINTEL_EMBEDDED": "1", "SECRET_KEY": kept.secret_key}
    if "MEMBERINTEL_KEK" not in given:
        environment["MEMBERINTEL_KEK_FILE"] = str(folder.kek)
    with ExitStack() as stack:
        if at:
            stack.callback(shutil.rmtree, at.sockets, ignore_errors=True)
        if at and at.account and at.account.keeps:
            folder.hand_over(*at.account.ids)
            stack.callback(folder.hand_over, *at.account.ids)
        if at and own_database:
            server = postgresql.start(at, kept.passwords["postgres"], fsync=fsync)
            stack.callback(children.stop, server, postgresql.ENDINGS)
            postgresql.make_roles(at, kept.passwords)
            for login in LOGINS:
                address = postgresql.url(login, kept.passwords[login], at.sockets)
                environment[f"DATABASE_URL_{login.upper()}"] = address
        if at and own_redis:
            stack.callback(children.stop, broker.start(at), broker.ENDINGS)
            environment["REDIS_URL"] = broker.url(at.sockets)
        yield environment | given | {"MEMBERINTEL_DATA": str(folder.path)}


def _check_reachable(given: Mapping[str, str]) -> None:
    """Say which server of a person's own does not answer, before any process fails on it with a trace."""
    for name in given:
        if name.startswith("DATABASE_URL_"):
            try:
                psycopg.connect(given[name], connect_timeout=5).close()
            except psycopg.Error as error:
                first = str(error).strip().split("\n", 1)[0]
                raise Misconfigured(
                    f"The database of {name} cannot be reached ({first}). Start it or correct {name}; "
                    "without the DATABASE_URL_ variables the embedded PostgreSQL is used."
                ) from None
    if "REDIS_URL" in given:
        try:
            reached, why = broker.answers(given["REDIS_URL"]), "no answer"
        except (redis.RedisError, ValueError) as error:  # it answers, but not to us; or the URL is none
            reached, why = False, str(error)
        if not reached:
            raise Misconfigured(
                f"The Redis of REDIS_URL cannot be used ({why}). Start it or correct REDIS_URL; "
                "without the variable the embedded Redis is used."
            )
