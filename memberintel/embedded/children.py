"""Child processes that never outlive their parent, and processes left behind that are surely ours."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, BinaryIO

import psutil

from memberintel.env import Misconfigured

PR_SET_PDEATHSIG = 1
SERVERS = ("postgres", "redis-server")

type Ours = Callable[[Sequence[str]], bool]
type Ending = tuple[signal.Signals, float]  # a signal, and the seconds it is given to work


def die_with_parent(death: signal.Signals) -> Callable[[], None] | None:
    """What a child does before exec so that the kernel signals it when its parent is gone, however it went.

    Linux only; elsewhere the next start clears up. The kernel means the parent *thread*: start children from
    a thread that lives as long as they should.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, death)
        if os.getppid() != parent:  # it died before we could ask
            os.kill(os.getpid(), signal.SIGKILL)

    return ask


def start(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    death: signal.Signals = signal.SIGTERM,
    account: tuple[int, int] | None = None,
    output: IO[bytes] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own (a Ctrl-C reaches only us, who stop children in order).

    account is (user id, group id) to run as; output receives stdout and stderr, else they are shared with ours.
    """
    uid, gid = account or (None, None)
    return subprocess.Popen(
        [os.fspath(part) for part in command],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        start_new_session=True,
        preexec_fn=die_with_parent(death),
        user=uid,
        group=gid,
        extra_groups=[] if account else None,
    )


def stop(process: subprocess.Popen[bytes], endings: Sequence[Ending]) -> None:
    """Send each signal in turn until the process ends, and kill it when none worked."""
    for number, seconds in endings:
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        return
    process.kill()
    process.wait()


def find(pid: int, ours: Ours) -> psutil.Process | None:
    """The running process with this id, if its command line is one of ours; a stranger's is never returned."""
    try:
        process = psutil.Process(pid)
        return process if ours(process.cmdline()) else None
    except (psutil.Error, ValueError):
        return None


def servers_in(*folders: Path) -> list[psutil.Process]:
    """Servers whose current folder is one of these: where the children of a killed PostgreSQL can still be found."""
    names = set(map(str, folders))
    return [process for process in psutil.process_iter() if _is_server_in(process, names)]


def _is_server_in(process: psutil.Process, folders: Collection[str]) -> bool:
    try:
        return process.name() in SERVERS and process.cwd() in folders
    except psutil.Error:
        return False


def end(process: psutil.Process, endings: Sequence[Ending]) -> None:
    """As `stop`, for a process that is not our child. psutil refuses to signal an id that was given anew."""
    for number, seconds in [*endings, (signal.SIGKILL, 5.0)]:
        try:
            process.send_signal(number)
            process.wait(seconds)
        except psutil.NoSuchProcess:
            return
        except psutil.TimeoutExpired:
            continue
        return


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], name: str, log: Path, seconds: float
) -> None:
    """Poll until ready; Misconfigured with the end of the log if the process ends first or time runs out."""
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
            raise Misconfigured(f"{name} did not start. Its log {log} ends:\n{tail}")
        time.sleep(0.02)


def fresh(log: Path) -> BinaryIO:
    """A new log file; the one before stays beside it, for whoever asks what happened last time."""
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    return log.open("wb")
