"""The embedded Redis: a socket, no TCP, nothing on disk (what must last is in PostgreSQL)."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import redis

from memberintel.embedded import children, place
from memberintel.embedded.place import Place

ENDINGS: Sequence[children.Ending] = ((signal.SIGTERM, 5.0),)


def url(sockets: Path) -> str:
    """A redis-py URL over the socket."""
    return f"unix://{quote(str(sockets / 'redis.sock'))}?db=0"


def start(at: Place) -> subprocess.Popen[bytes]:
    """Start the server and return once it answers."""
    clear(at)
    log = at.folder / "redis.log"
    with children.fresh(log) as output:
        process = children.start(
            [at.programs.redis, *_options(at)],
            env=place.environment(at),
            account=at.ids,
            output=output,
            cwd=at.sockets,
        )
    try:
        children.wait_until(lambda: answers(url(at.sockets)), process, "The embedded Redis", log, seconds=60)
    except BaseException:
        children.stop(process, ENDINGS)
        raise
    return process


def answers(address: str) -> bool:
    """Whether a Redis is there."""
    with redis.Redis.from_url(address, socket_connect_timeout=5, socket_timeout=5) as client:
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False


def clear(at: Place) -> None:
    """End what a crash left running here; the caller holds the lock of the data folder."""
    note = at.sockets / "redis.pid"
    if note.exists():
        first = note.read_text().strip()
        left = children.find(int(first), _serves(at)) if first.isdigit() else None
        if left:
            children.end(left, ENDINGS)
        note.unlink(missing_ok=True)
    (at.sockets / "redis.sock").unlink(missing_ok=True)


def _options(at: Place) -> list[str]:
    socket = ["--port", "0", "--unixsocket", str(at.sockets / "redis.sock"), "--unixsocketperm", "700"]
    nothing_kept = ["--save", "", "--appendonly", "no"]
    return [*socket, *nothing_kept, "--pidfile", str(at.sockets / "redis.pid"), "--daemonize", "no"]


def _serves(at: Place) -> children.Ours:
    # Redis writes its own title: "redis-server unixsocket:/the/socket", in one or several parts.
    def ours(command: Sequence[str]) -> bool:
        return "redis-server" in " ".join(command[:1]) and str(at.sockets / "redis.sock") in " ".join(command)

    return ours
