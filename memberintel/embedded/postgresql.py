"""The embedded PostgreSQL: a cluster of its own passwords, a foreground child, a socket and no TCP."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from memberintel.embedded import children, place
from memberintel.embedded.place import Place
from memberintel.env import Misconfigured
from memberintel.tenancy.roles import roles_sql

DATABASE = "memberintel"
# Smart shutdown waits for clients that may never go; fast (INT) ends their sessions, immediate (QUIT) is a crash.
ENDINGS: Sequence[children.Ending] = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0))

ALWAYS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and failing rows may carry a customer's words: the log gets the error alone.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}
FORGETFUL = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Tests come in crowds, and copy a database that nobody may be at meanwhile, not even to tidy up.
    "max_connections": "300",
    "autovacuum": "off",
}


def url(login: str, password: str, sockets: Path, database: str = DATABASE) -> str:
    """A libpq URL over the socket."""
    return f"postgresql://{login}:{quote(password, safe='')}@/{database}?host={quote(str(sockets), safe='')}"


def start(at: Place, password: str, *, fsync: bool) -> subprocess.Popen[bytes]:
    """Start the server, making its cluster first if there is none, and return once it answers."""
    clear(at)
    if not at.cluster.exists():
        _initialise(at, password, fsync=fsync)
    options = ALWAYS | ({} if fsync else FORGETFUL) | {"unix_socket_directories": str(at.sockets)}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    log = at.folder / "postgres.log"
    with children.fresh(log) as output:
        process = children.start(
            [at.programs.postgresql / "bin" / "postgres", "-D", at.cluster, *settings],
            env=place.environment(at),
            death=signal.SIGINT,
            account=at.ids,
            output=output,
            cwd=Path("/"),
        )
    try:
        superuser = url("postgres", password, at.sockets, "postgres")
        children.wait_until(lambda: answers(superuser), process, "The embedded PostgreSQL", log, seconds=60)
    except BaseException:
        children.stop(process, ENDINGS)
        raise
    return process


def answers(address: str) -> bool:
    """Whether a login gets in. A refused password is an error, not a reason to wait."""
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise Misconfigured(
                "The embedded PostgreSQL refuses the passwords of its data folder: secrets.json belongs to another "
                "database. Put the right file back, or move the folder away to start afresh."
            ) from None
        return False
    return True


def make_roles(at: Place, passwords: Mapping[str, str]) -> None:
    """Make the database and its roles, or bring them up to date."""
    superuser = passwords["postgres"]
    with psycopg.connect(url("postgres", superuser, at.sockets, "postgres"), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'owner'").fetchone():
            connection.execute("CREATE ROLE owner NOLOGIN")
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER owner").format(sql.Identifier(DATABASE)))
    logins = {login: word for login, word in passwords.items() if login != "postgres"}
    with psycopg.connect(url("postgres", superuser, at.sockets)) as connection:
        connection.execute(roles_sql(DATABASE, logins).encode())


def clear(at: Place) -> None:
    """End what a crash left running on this cluster, and remove the pid files that would block a start.

    The caller holds the lock of the data folder, so nothing that is found can be in use.
    """
    note = at.cluster / "postmaster.pid"
    if note.exists():
        first = note.read_text().split("\n", 1)[0]
        left = children.find(int(first), _serves(at)) if first.isdigit() else None
        if left:
            children.end(left, ENDINGS)
        for backend in children.servers_in(at.cluster):  # two generations on one cluster would ruin it
            children.end(backend, ((signal.SIGQUIT, 5.0),))
        note.unlink(missing_ok=True)
    for file in at.sockets.glob(".s.PGSQL.*"):
        file.unlink(missing_ok=True)


def _serves(at: Place) -> children.Ours:
    def ours(command: Sequence[str]) -> bool:
        return bool(command) and Path(command[0]).name == "postgres" and str(at.cluster) in command

    return ours


def _initialise(at: Place, password: str, *, fsync: bool) -> None:
    """Make the cluster in a folder of another name, so that one cut short is not taken for whole."""
    part = at.folder / "postgres.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    at.give(part)
    word = at.sockets / "initial"
    word.touch(mode=0o600)
    word.write_text(password)
    at.give(word)
    locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    secure = ["--username=postgres", "--auth=scram-sha-256", f"--pwfile={word}"]
    command = [str(at.programs.postgresql / "bin" / "initdb"), "-D", str(part), *secure, *locale]
    uid, gid = at.ids or (None, None)
    try:
        made = subprocess.run(
            command if fsync else [*command, "--no-sync"],
            env=place.environment(at),
            cwd="/",
            user=uid,
            group=gid,
            extra_groups=[] if at.ids else None,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        word.unlink(missing_ok=True)
    if made.returncode:
        raise Misconfigured(f"The embedded PostgreSQL could not be set up in {part}:\n{made.stderr.strip()}")
    part.rename(at.cluster)
