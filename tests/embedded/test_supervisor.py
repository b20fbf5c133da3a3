"""The supervisor: stops its parts in order, and says which one ended by itself."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memberintel.embedded import supervisor
from memberintel.embedded.supervisor import STOPPING, Part
from memberintel.env import Misconfigured
from tests.waiting import PATIENCE, until

NOTES_ITS_END = """
import pathlib, signal, sys, time
def end(*_):
    with open({file!r}, "a") as file:
        file.write({name!r} + "\\n")
    sys.exit()
signal.signal(signal.SIGTERM, end)
pathlib.Path({ready!r}).touch()
time.sleep(3600)
"""


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def part(name: str, program: str) -> Part:
    return Part(name, (sys.executable, "-c", program), "web", ((signal.SIGTERM, PATIENCE),))


def test_parts_stop_in_the_order_given(tmp_path: Path) -> None:
    ends = tmp_path / "ends"
    names = ("web server", "clock", "worker")
    programs = [NOTES_ITS_END.format(file=str(ends), name=name, ready=str(tmp_path / name)) for name in names]
    with supervisor._kept([part(*pair) for pair in zip(names, programs, strict=True)], os.environ) as running:
        until(lambda: all((tmp_path / name).exists() for name in names))
        supervisor._check_alive(running)
    assert ends.read_text().splitlines() == list(names)
    assert all(process.returncode == 0 for process in running.values())


def test_a_part_that_ends_by_itself_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    wanted = [part("worker", "print('no broker', flush=True); raise SystemExit(3)")]
    with supervisor._kept(wanted, os.environ) as running:
        until(lambda: running["worker"].poll() is not None)
        with pytest.raises(Misconfigured, match="The worker ended with status 3"):
            supervisor._check_alive(running)
    assert "no broker" in capfd.readouterr().out


def test_a_part_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    deaf = f"{ignore}; open({str(tmp_path / 'up')!r}, 'w'); time.sleep(3600)"
    wanted = Part("clock", (sys.executable, "-c", deaf), "worker", ((signal.SIGTERM, 0.2),))
    with supervisor._kept([wanted], os.environ) as running:
        until((tmp_path / "up").exists)
    assert running["clock"].returncode == -signal.SIGKILL
