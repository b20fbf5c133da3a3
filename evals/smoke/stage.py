"""The product as it runs: migrated, served, with a worker and a clock, and people in it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from allauth.account.models import EmailAddress

from memberintel.embedded import children, supervisor
from memberintel.embedded.place import CHECKOUT
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope
from memberintel.tenancy.models import Tenant, User

PASSWORD = "glaze-kiln-river"  # noqa: S105 (of accounts that last a minute)
START_SECONDS = 60.0


class NotReady(RuntimeError):
    """A process did not come up, or ended."""


@dataclass(frozen=True)
class Customer:
    """Somebody with an account."""

    email: str
    scope: Scope


@dataclass(frozen=True)
class Stage:
    """Where the product answers and what it keeps."""

    url: str
    data: Path
    logs: Sequence[Path]
    processes: Mapping[str, subprocess.Popen[bytes]]

    def check_alive(self) -> None:
        """NotReady when one of the processes has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise NotReady(f"the {name} ended with status {process.returncode}")

    def wait_for_web(self) -> None:
        """Until the web server answers; NotReady when it does not."""
        until = time.monotonic() + START_SECONDS
        while True:
            self.check_alive()
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if time.monotonic() > until:
                raise NotReady("the web server gave no good answer on /readyz")
            time.sleep(0.05)


def manage(*arguments: str, process: str = "web") -> subprocess.CompletedProcess[str]:
    """Run a command of manage.py to its end."""
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *arguments],
        env={**os.environ, "MEMBERINTEL_PROCESS": process},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def served(data: Path) -> Iterator[Stage]:
    """Web server, worker and clock, each writing to a log of its own; all stopped at the end."""
    port = _free_port()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    logs = []
    with ExitStack() as stack:
        for part in reversed(supervisor.parts(port, data)):  # they are to stop in the order they are given
            log = data / f"{part.name.replace(' ', '-')}.log"
            output = stack.enter_context(log.open("wb"))
            process = children.start(
                part.command,
                env={**os.environ, "MEMBERINTEL_PROCESS": part.process},
                output=output,
                cwd=CHECKOUT,
            )
            stack.callback(children.stop, process, part.endings)
            processes[part.name] = process
            logs.append(log)
        yield Stage(f"http://{supervisor.HOST}:{port}", data, logs, processes)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((supervisor.HOST, 0))
        return int(probe.getsockname()[1])


def customer(name: str, tier: str, *, beside: Customer | None = None) -> Customer:
    """A new customer: owner of a new tenant, or a colleague of `beside`."""
    tenant = (
        Tenant.objects.get(id=beside.scope.tenant_id)
        if beside
        else Tenant.objects.create(name=name, tier_id=tier)
    )
    user = User.objects.create_user(f"{name}@smoke.example", PASSWORD, tenant=tenant, is_owner=beside is None)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return Customer(user.email, Scope(tenant.id, user.id))


def nobodys_id() -> UUID:
    """An id of nothing."""
    return uuid7()


def tail(log: Path, lines: int = 12) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def poll(ready: Any, *, seconds: float, stage: Stage) -> bool:
    """Whether `ready` came true in time; NotReady when a process ends meanwhile."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            return False
        stage.check_alive()
        time.sleep(0.1)
    return True
