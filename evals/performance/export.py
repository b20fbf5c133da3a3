"""What memory a customer's export takes, however much they said."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from evals import memory
from evals.performance.log import customer, session_of
from evals.performance.results import Figure, at_most, plain
from memberintel.tenancy.context import Scope, scope

SESSIONS, EVENTS, LITTLE = 10, 10_000, 50
SCRIPT = """
import sys
from pathlib import Path
from uuid import UUID
import django
django.setup()
from memberintel.privacy import export
from memberintel.tenancy.context import Scope, scope
with scope(Scope(UUID(sys.argv[2]), UUID(sys.argv[3]))), Path(sys.argv[1]).open("wb") as out:
    export.write(out)
"""


def figures() -> Iterator[Figure]:
    """An export of 100,000 messages, beside one of fifty."""
    small, large = customer(), customer()
    with scope(small):
        session_of(small, LITTLE)
    with scope(large):
        for _ in range(SESSIONS):
            session_of(large, EVENTS)
    name = f"export of {SESSIONS * EVENTS:,} messages"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "export.zip"
        little = _taken(small, out)
        begun = time.perf_counter()
        much = _taken(large, out)
        yield plain(f"{name}, with the start of the process", time.perf_counter() - begun, "s")
        yield plain(f"{name}, its size", out.stat().st_size / 1024**2, "MiB")
    yield at_most(f"{name}, memory beside that of one of {LITTLE}", much - little, 150, "MiB")


def _taken(who: Scope, out: Path) -> int:
    """MiB of a process that writes the customer's export."""
    ids = [str(who.tenant_id), str(who.customer_id)]
    return memory.most([sys.executable, "-c", SCRIPT, str(out), *ids], env=os.environ)
