"""A PgBouncer in transaction mode before the database of this run."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from memberintel import env
from memberintel.embedded import children
from tests.waiting import PATIENCE

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
PORT = 6432
LOGINS = ("WEB", "WORKER", "SUPPORT")

# Fewer connections to the server than there are clients, so that transactions of all people meet on each.
CONFIGURATION = """
[databases]
* = host={server}
[pgbouncer]
listen_port = {port}
unix_socket_dir = {folder}
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 3
max_client_conn = 300
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def bouncer() -> Iterator[dict[str, str]]:
    """Yield the login variables with PgBouncer's address. It runs as the user who may reach the database."""
    entries = {login: env.database(f"DATABASE_URL_{login}") for login in LOGINS}
    server = Path(entries["WEB"]["HOST"])
    folder = Path(tempfile.mkdtemp(prefix="mi-bouncer-", dir="/tmp"))
    account = (server.stat().st_uid, server.stat().st_gid) if os.geteuid() == 0 else None
    try:
        (folder / "users").write_text(
            "".join(f'"{entry["USER"]}" "{entry["PASSWORD"]}"\n' for entry in entries.values())
        )
        (folder / "bouncer.ini").write_text(CONFIGURATION.format(server=server, port=PORT, folder=folder))
        if account:
            for place in (folder, *folder.iterdir()):
                os.chown(place, *account)
        log = folder / "bouncer.log"
        with log.open("wb") as output:
            process = children.start(
                [str(PROGRAM), folder / "bouncer.ini"], env={}, account=account, output=output
            )
        try:
            variables = {f"DATABASE_URL_{login}": _address(entry, folder) for login, entry in entries.items()}
            children.wait_until(
                lambda: _answers(variables["DATABASE_URL_WEB"]), process, "PgBouncer", log, PATIENCE
            )
            yield variables
        finally:
            children.stop(process, [(signal.SIGINT, 5.0)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _address(entry: dict[str, str], folder: Path) -> str:
    word = quote(entry["PASSWORD"], safe="")
    return (
        f"postgresql://{entry['USER']}:{word}@/{entry['NAME']}?host={quote(str(folder), safe='')}&port={PORT}"
    )


def _answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
