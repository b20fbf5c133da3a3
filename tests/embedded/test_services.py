"""The services of a data folder: private, lasting, and replaced by a person's own where those are named."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import redis

from memberintel.embedded import broker, place, postgresql, services, superuser_url
from memberintel.embedded.folder import LOGINS
from memberintel.env import Misconfigured
from tests.embedded.conftest import servers_of
from tests.waiting import PATIENCE

DATABASES = {f"DATABASE_URL_{login.upper()}" for login in LOGINS}
NOTHING: dict[str, str] = {}


def ask(address: str, query: str) -> object:
    with psycopg.connect(address) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def test_everything_a_process_needs_is_named_and_answers(data: Path) -> None:
    with services(data, env=NOTHING, fsync=False) as found:
        assert set(found) == DATABASES | {
            "MEMBERINTEL_DATA",
            "MEMBERINTEL_EMBEDDED",
            "MEMBERINTEL_KEK_FILE",
            "REDIS_URL",
            "SECRET_KEY",
        }
        for login in LOGINS:
            assert ask(found[f"DATABASE_URL_{login.upper()}"], "SELECT session_user") == login
        assert ask(superuser_url(data), "SHOW server_encoding") == "UTF8"
        with redis.Redis.from_url(found["REDIS_URL"]) as client:
            assert client.ping()
    assert servers_of(data) == []


def test_nobody_else_gets_in(data: Path) -> None:
    with services(data, env=NOTHING, fsync=False) as found:
        assert ask(found["DATABASE_URL_WEB"], "SHOW listen_addresses") == ""
        for refused in ("web", "postgres"):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(found["DATABASE_URL_WEB"], user=refused, password="guessed")
        sockets = Path(parse_qs(urlsplit(found["DATABASE_URL_WEB"]).query)["host"][0])
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert len(str(sockets / ".s.PGSQL.5432")) <= 107
        for name in ("secrets.json", "kek", "running.json", "lock"):
            assert stat.S_IMODE((data / name).stat().st_mode) == 0o600, name
        assert stat.S_IMODE(data.stat().st_mode) & 0o066 == 0


def test_a_second_start_finds_what_the_first_left(data: Path) -> None:
    with services(data, env=NOTHING) as first, psycopg.connect(first["DATABASE_URL_OWNER"]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    with services(data, env=NOTHING) as second:
        assert ask(second["DATABASE_URL_OWNER"], "SELECT answer FROM kept") == 42
        assert second == first


def test_servers_of_ones_own_are_used_and_none_is_started(data: Path, tmp_path: Path) -> None:
    with services(data, env=NOTHING, fsync=False) as own:
        given = {name: own[name] for name in (*DATABASES, "REDIS_URL")} | {"MEMBERINTEL_KEK": "mine"}
        other = tmp_path / "other"
        with services(other, env=given) as found:
            assert given.items() <= found.items()
            assert "MEMBERINTEL_KEK_FILE" not in found
        assert not (other / "postgres").exists()
        assert servers_of(other) == []


def test_half_a_set_of_databases_is_refused_by_name(tmp_path: Path) -> None:
    with (
        pytest.raises(Misconfigured, match="DATABASE_URL_WORKER and DATABASE_URL_OWNER must be set too"),
        services(tmp_path, env={"DATABASE_URL_WEB": "postgresql://web@/m"}),
    ):
        pass


def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    address = f"postgresql://web:hidden@/m?host={tmp_path}"
    env = dict.fromkeys(DATABASES, address) | {"REDIS_URL": "unix:///nowhere"}
    with pytest.raises(Misconfigured, match="cannot be reached") as caught, services(tmp_path, env=env):
        pass
    assert "DATABASE_URL_" in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("address", ["unix:///nowhere", "nonsense", "redis://127.0.0.1:1/0"])
def test_a_redis_that_cannot_be_reached_is_named(data: Path, address: str) -> None:
    with (
        pytest.raises(Misconfigured, match="The Redis of REDIS_URL cannot be used"),
        services(data, env={"REDIS_URL": address}, fsync=False),
    ):
        pass
    assert servers_of(data) == []


def test_a_lost_key_is_never_replaced_under_a_database(data: Path) -> None:
    with services(data, env=NOTHING, fsync=False):
        pass
    for lost in ("kek", "secrets.json"):
        (data / lost).rename(data / "aside")
        with (
            pytest.raises(Misconfigured, match=r"is gone\. Put both files back"),
            services(data, env=NOTHING),
        ):
            pass
        (data / "aside").rename(data / lost)


def test_a_pid_file_that_names_a_stranger_blocks_nothing_and_hurts_no_one(data: Path) -> None:
    with services(data, env=NOTHING, fsync=False):
        pass
    at = place.choose(data)
    stranger = subprocess.Popen(["sleep", "3600"], user=at.ids[0] if at.ids else None)
    try:
        left = f"{stranger.pid}\n{at.cluster}\n1700000000\n5432\n{at.sockets}\n\n  5432001         0\nready\n"
        (at.cluster / "postmaster.pid").write_text(left)
        (at.sockets / ".s.PGSQL.5432.lock").write_text(left)
        (at.sockets / "redis.pid").write_text(f"{stranger.pid}\n")
        with services(data, env=NOTHING, fsync=False) as found:
            assert ask(found["DATABASE_URL_WEB"], "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_servers_left_running_by_a_crash_are_ended_first(data: Path) -> None:
    with services(data, env=NOTHING, fsync=False) as found:
        word = urlsplit(found["DATABASE_URL_WEB"]).password
    at = place.choose(data)
    left = (postgresql.start(at, superuser_word(data), fsync=False), broker.start(at))
    with services(data, env=NOTHING, fsync=False) as found:
        assert urlsplit(found["DATABASE_URL_WEB"]).password == word
        assert all(process.wait(PATIENCE) is not None for process in left)
        assert ask(found["DATABASE_URL_WEB"], "SELECT 1") == 1


def superuser_word(data: Path) -> str:
    word = urlsplit(superuser_url(data)).password
    assert word
    return word


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a folder that the servers' user cannot reach")
def test_as_root_the_cluster_moves_where_its_user_can_reach_it(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    data = hidden / "data"
    try:
        with services(data, env=NOTHING, fsync=False) as found:
            assert ask(found["DATABASE_URL_WEB"], "SELECT 1") == 1
        moved = Path((data / "elsewhere").read_text())
        assert moved.is_relative_to("/var/tmp")
        assert (moved / "postgres").stat().st_uid != 0
        assert not (data / "postgres").exists()
        data.rename(hidden / "renamed")
        with pytest.raises(Misconfigured, match="Move it to"), services(hidden / "renamed", env=NOTHING):
            pass
    finally:
        place.remove(data)


def test_a_long_path_gets_a_short_socket(data: Path) -> None:
    deep = data / ("long" * 20) / ("longer" * 10)
    data.chmod(0o711)
    deep.parent.mkdir()
    with services(deep, env=NOTHING, fsync=False) as found:
        assert ask(found["DATABASE_URL_WEB"], "SELECT 1") == 1
