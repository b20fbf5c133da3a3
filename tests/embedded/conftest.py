"""Data folders for the tests of the embedded services, which start and stop servers of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from memberintel.embedded import private_folder
from memberintel.embedded.place import CHECKOUT
from tests.waiting import PATIENCE


def servers_of(data: Path) -> list[psutil.Process]:
    """The PostgreSQL and Redis processes whose command line names this data folder or its sockets."""
    names = {str(data / "postgres"), str(data / "run"), data.name}
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if ("postgres" in line or "redis-server" in line) and any(name in line for name in names):
            found.append(process)
    return [process for process in found if process.pid != os.getpid()]


@pytest.fixture
def data() -> Iterator[Path]:
    """An empty data folder that the servers can reach whoever runs the tests."""
    with private_folder() as folder:
        yield folder


class Command:
    """`python -m memberintel.embedded ...` on a data folder, with nothing of our environment but the path."""

    def __init__(self, data: Path, *arguments: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memberintel.embedded", *arguments],
            cwd=CHECKOUT,
            env={"PATH": os.environ["PATH"], "MEMBERINTEL_DATA": str(data)} | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line it prints; waits for it."""
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end: (status, stdout, stderr)."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output, errors


@pytest.fixture
def command(data: Path) -> Iterator[Callable[..., Command]]:
    """Start commands on the data folder; those still running at the end are killed."""
    started: list[Command] = []

    def start(*arguments: str, **env: str) -> Command:
        started.append(Command(data, *arguments, **env))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()
