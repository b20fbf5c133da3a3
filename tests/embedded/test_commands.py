"""`exec` and `run`: joined, refused, killed, interrupted; nothing is left behind and nothing blocks the next."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memberintel.embedded import private_folder
from tests.embedded.conftest import Command, servers_of
from tests.waiting import until

type Start = Callable[..., Command]

SHOW = (sys.executable, "-c", "import os; print(os.environ['DATABASE_URL_WEB'])")
FOREVER = "import time; time.sleep(3600)"  # until it is told to go
HOLD = (sys.executable, "-c", f"print('up', flush=True); {FOREVER}")


def test_a_second_command_joins_and_leaves_the_services_up(data: Path, command: Start) -> None:
    first = command("exec", "--", *HOLD)
    assert first.line() == "up"
    addresses = {command("exec", "--", *SHOW).ended()[1] for _ in range(2)}
    assert len(addresses) == 1
    assert servers_of(data)


def test_a_second_run_is_refused_by_name(data: Path, command: Start) -> None:
    first = command("exec", "--", *HOLD)
    assert first.line() == "up"
    status, _, errors = command("run", PORT="0").ended()
    assert status == 1
    assert errors == (
        f"MemberIntel already runs on {data} (process {first.process.pid}). "
        "Stop it, or set MEMBERINTEL_DATA to another folder.\n"
    )


def test_after_a_kill_nothing_runs_on_and_the_next_start_works(data: Path, command: Start) -> None:
    first = command("exec", "--", *HOLD)
    assert first.line() == "up"
    first.tell(signal.SIGKILL)
    assert command("exec", "--", *SHOW).ended()[0] == 0
    until(lambda: not servers_of(data), saw=lambda: servers_of(data))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command_and_then_the_services_stop(
    data: Path, command: Start, number: signal.Signals
) -> None:
    first = command("exec", "--", *HOLD)
    assert first.line() == "up"
    first.tell(number)
    status, _, _ = first.ended()
    assert status == 128 + number
    assert servers_of(data) == []
    assert not (data / "running.json").exists()


def test_the_status_of_the_command_is_passed_on(command: Start) -> None:
    assert command("exec", "--", sys.executable, "-c", "raise SystemExit(7)").ended()[0] == 7
    status, _, errors = command("exec", "--", "/no/such/command").ended()
    assert (status, errors) == (1, "/no/such/command cannot be run: No such file or directory.\n")


def test_a_private_folder_goes_with_the_command(command: Start) -> None:
    show = (sys.executable, "-c", "import os; print(os.environ['MEMBERINTEL_DATA'])")
    status, output, _ = command("exec", "--private", "--", *show).ended()
    assert status == 0
    assert not Path(output.strip()).exists()


def test_a_private_folder_left_by_a_kill_goes_with_the_next_one(command: Start) -> None:
    show = f"import os; print(os.environ['MEMBERINTEL_DATA'], flush=True); {FOREVER}"
    first = command("exec", "--private", "--", sys.executable, "-c", show)
    left = Path(first.line())
    first.tell(signal.SIGKILL)
    first.process.wait()
    with private_folder() as fresh:
        assert fresh.exists()
        # Whoever else makes a folder on this machine just now may have been the next one, and be at it still.
        until(lambda: not left.exists(), saw=lambda: [*left.rglob("*")])


def test_a_port_in_use_is_told_plainly(command: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, errors = command("run", PORT=str(port)).ended()
    assert status == 1
    assert errors == f"Port {port} is in use or not allowed. Set PORT to a free one: PORT=8001 make run.\n"
