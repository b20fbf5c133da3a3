"""The services a test run stands on: one PostgreSQL and Redis, one migrated template, a database per worker.

Started by the process pytest was called in; its xdist workers inherit the variables and copy the template.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from memberintel.embedded import services, superuser_url

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parent.parent
LOGINS = ("WEB", "WORKER", "OWNER", "SUPPORT", "BACKUP")
TEMPLATE = "memberintel"

_stack = ExitStack()


def start() -> None:
    """Start the services and migrate the template, unless the process above has done so."""
    if "MEMBERINTEL_TEST_DATA" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="memberintel-test-"))
    _stack.callback(shutil.rmtree, folder, ignore_errors=True)
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_URL", "REDIS"))
    }
    os.environ.update(_stack.enter_context(services(folder, env=clean, fsync=False)))
    os.environ["MEMBERINTEL_TEST_DATA"] = str(folder)
    _migrate()


def stop() -> None:
    """Stop what `start` started."""
    _stack.close()


def use_database_of(worker: str) -> None:
    """Make a copy of the template for an xdist worker and point the variables of this process at it."""
    name = f"test_{worker}"
    copy_template(name)
    os.environ.update(urls_for(name))


def copy_template(name: str) -> None:
    """A fresh database like the migrated template; one of that name is dropped first."""
    data = Path(os.environ["MEMBERINTEL_TEST_DATA"])
    with psycopg.connect(superuser_url(data), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER owner".encode())
        connection.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC".encode())
        connection.execute(
            f"GRANT CONNECT ON DATABASE {name} TO owner, web, worker, support, backup".encode()
        )


def urls_for(name: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The login variables, pointing at another database of the same server."""
    env = os.environ if env is None else env
    names = [f"DATABASE_URL_{login}" for login in LOGINS]
    return {variable: urlunsplit(urlsplit(env[variable])._replace(path=f"/{name}")) for variable in names}


def uvicorn(port: socket.socket, *options: str) -> list[str]:
    """The command of a web process that answers on that socket, which it inherits (`pass_fds`): a number alone might
    be somebody else's by the time the process is up."""
    command = [sys.executable, "-m", "uvicorn", "memberintel.asgi:application", "--fd", str(port.fileno())]
    return [*command, "--lifespan", "on", "--log-level", "warning", *options]


def address_of(port: socket.socket) -> str:
    """Where a listening socket is reached."""
    return f"http://{HOST}:{port.getsockname()[1]}"


def _migrate() -> None:
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env={**os.environ, "MEMBERINTEL_PROCESS": "owner"},
        check=True,
    )
