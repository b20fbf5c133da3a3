"""What memory a process takes at most, seen from outside: what the system counts itself begins with its parent's."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import psutil

EVERY_SECONDS = 0.02


def most(command: Sequence[str], *, env: Mapping[str, str]) -> int:
    """MiB that the command took at most. Ends this process when the command broke."""
    process = subprocess.Popen(command, env=dict(env))
    watched, found = psutil.Process(process.pid), 0
    while process.poll() is None:
        with suppress(psutil.Error):
            found = max(found, watched.memory_info().rss)
        time.sleep(EVERY_SECONDS)
    if process.returncode:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    return found // 1024**2
