"""What `make run` keeps alive: the services, the web server, the worker and the clock, as one thing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from memberintel.embedded import children
from memberintel.embedded.place import CHECKOUT
from memberintel.embedded.running import services
from memberintel.env import Misconfigured

HOST = "127.0.0.1"
ANSWER_SECONDS = 60.0
DRAIN_SECONDS = 20  # open streams end at once, other requests within this; running turns have 30 s more
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """We were asked to stop. Not an Exception: no handler on the way may take it for an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class Part:
    """One long-running process: its name for messages, its command, its login, and how it is stopped."""

    name: str
    command: Sequence[str]
    process: str
    endings: Sequence[children.Ending]

    @property
    def environment(self) -> dict[str, str]:
        """What it needs beside the services."""
        # Celery warns root of pickled messages; ours are JSON.
        quiet = {"PYTHONWARNINGS": "ignore:You're running the worker"} if self.name == "worker" else {}
        return {"MEMBERINTEL_PROCESS": self.process, **quiet}


def parts(port: int, data: Path) -> tuple[Part, ...]:
    """The processes in the order they start; they stop in the same order, the web server first."""
    python = sys.executable
    celery = [python, "-m", "celery", "--app", "memberintel", "--quiet"]
    web = [python, "-m", "uvicorn", "memberintel.asgi:application", "--host", HOST, "--port", str(port)]
    web += ["--lifespan", "on", "--timeout-graceful-shutdown", str(DRAIN_SECONDS), "--log-level", "warning"]
    work = ["worker", "--queues", "default,wrapups", "--concurrency", "2", "--loglevel", "WARNING"]
    beat = ["beat", "--schedule", str(data / "beat"), "--pidfile", "", "--loglevel", "WARNING"]
    return (
        Part("web server", web, "web", ((signal.SIGTERM, DRAIN_SECONDS + 30.0),)),
        Part("clock", [*celery, *beat], "worker", ((signal.SIGTERM, 5.0),)),
        # TERM lets a task finish, QUIT gives it up: it is claimed again when its lease runs out.
        Part("worker", [*celery, *work], "worker", ((signal.SIGTERM, 20.0), (signal.SIGQUIT, 5.0))),
    )


def run(data: Path, port: int) -> None:
    """Serve until told to stop. Misconfigured with a plain sentence when something is missing or ends."""
    try:
        with _stoppable():
            os.umask(0o077)  # mail and other files in the data folder are nobody else's
            with services(data, join=False) as environment:
                _refuse_taken(port)  # after the folder: of two causes that one says more
                _serve(data, port, os.environ | environment)
    except Stopped as stopped:
        _say("Stopped.")
        if stopped.number != signal.SIGINT:
            sys.exit(128 + stopped.number)


def execute(data: Path, command: Sequence[str]) -> int:
    """Run a command while the services of a data folder are up; its exit status."""
    try:
        with _stoppable(), services(data) as environment:
            return _attend(command, os.environ | environment)
    except Stopped as stopped:
        return 128 + stopped.number


def _serve(data: Path, port: int, env: Mapping[str, str]) -> None:
    _manage("migrate", "--no-input", "--verbosity", "0", env={**env, "MEMBERINTEL_PROCESS": "owner"})
    _manage("import_knowledge", "--verbosity", "0", env={**env, "MEMBERINTEL_PROCESS": "owner"})
    _manage("verify_start", env={**env, "MEMBERINTEL_PROCESS": "web"})
    _manage("demo", env={**env, "MEMBERINTEL_PROCESS": "web"})
    with _kept(parts(port, data), env) as running:
        _await_answer(running, port)
        _say(f"MemberIntel is at http://{HOST}:{port}/ (Ctrl-C stops it)")
        while True:
            _check_alive(running)
            time.sleep(0.2)


def _attend(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command in our own session, so that it has the terminal, and pass on what we are told."""
    try:
        process = subprocess.Popen(
            list(command), env=dict(env), preexec_fn=children.die_with_parent(signal.SIGTERM)
        )
    except OSError as error:
        raise Misconfigured(f"{command[0]} cannot be run: {error.strerror}.") from None

    def pass_on(number: int, frame: FrameType | None) -> None:
        # A Ctrl-C at a terminal has reached the command too; it would take a second one for impatience.
        if not (number == signal.SIGINT and sys.stdin.isatty()):
            process.send_signal(number)

    for number in STOPPING:
        if signal.getsignal(number) == _raise_stopped:
            signal.signal(number, pass_on)
    status = process.wait()
    _ignore_signals()
    return status if status >= 0 else 128 - status


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let the first signal to stop raise Stopped, so that every `with` block on the way is left in order."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    for number in STOPPING:
        if number != signal.SIGHUP or before[number] != signal.SIG_IGN:  # nohup asked to be left alone
            signal.signal(number, _raise_stopped)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_stopped(number: int, frame: FrameType | None) -> None:
    _ignore_signals()  # every wait on the way out has an end; being asked twice must not cut it short
    raise Stopped(number)


def _ignore_signals() -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            raise Misconfigured(
                f"Port {port} is in use or not allowed. Set PORT to a free one: PORT=8001 make run."
            ) from None


def _manage(*arguments: str, env: Mapping[str, str]) -> None:
    """Run a command of manage.py to its end; what it has to say it prints itself."""
    process = children.start([sys.executable, CHECKOUT / "manage.py", *arguments], env=env, cwd=CHECKOUT)
    try:
        status = process.wait()
    except BaseException:
        children.stop(process, ((signal.SIGTERM, 10.0),))
        raise
    if status:
        raise Misconfigured(f"`manage.py {arguments[0]}` ended with status {status}; it says why above.")


@contextmanager
def _kept(wanted: Sequence[Part], env: Mapping[str, str]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start the parts, and stop them in order whatever happens."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for part in wanted:
            running[part.name] = children.start(part.command, env={**env, **part.environment}, cwd=CHECKOUT)
        yield running
    finally:
        _ignore_signals()
        for part in wanted:
            if part.name in running:
                children.stop(running[part.name], part.endings)


def _await_answer(running: Mapping[str, subprocess.Popen[bytes]], port: int) -> None:
    deadline = time.monotonic() + ANSWER_SECONDS
    while not _answers(port):
        _check_alive(running)
        if time.monotonic() > deadline:
            raise Misconfigured(
                f"The web server gave no good answer on /healthz in {ANSWER_SECONDS:.0f} seconds."
            )
        time.sleep(0.1)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _check_alive(running: Mapping[str, subprocess.Popen[bytes]]) -> None:
    for name, process in running.items():
        status = process.poll()
        if status is not None:
            how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
            raise Misconfigured(f"The {name} ended {how}; what it said last is above. The rest is stopped.")
