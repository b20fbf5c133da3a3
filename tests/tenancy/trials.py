"""Runs a trial in a process of its own, as the login `web`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.services import ROOT
from tests.tenancy.conftest import Cast
from tests.waiting import PATIENCE


def try_out(cast: Cast, *, ways: dict[str, int], stamp: str = "ours", **variables: str) -> Any:
    """What came of that many requests in each way, and the counts of the connection pool."""
    people = [
        [str(p.scope.tenant_id), str(p.scope.customer_id), 1] for p in (cast.alice, cast.charlie, cast.bob)
    ]
    order = json.dumps({"people": people, "stamp": stamp, "ways": ways})
    ran = subprocess.run(
        [sys.executable, "-m", "tests.tenancy.trial", order],
        cwd=ROOT,
        env={**os.environ, "MEMBERINTEL_PROCESS": "web", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return json.loads(ran.stdout)
