"""A worker dies in the middle of a wrap-up: the backfill ends at exactly one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from tests.conftest import Person
from tests.waiting import until
from tests.wrapups.stage import PLAN, job_of, talked, wrap_ups
from wrapups import backfill, tasks
from wrapups.models import ClosingJob, JobState

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = """
import asyncio, sys
from uuid import UUID
import django
django.setup()
from memberintel.tenancy.context import Scope
from wrapups import makers
job, tenant, customer = map(UUID, sys.argv[1:])
asyncio.run(makers.do(job, Scope(tenant, customer)))
"""


def test_a_worker_killed_while_the_model_thinks_leaves_one_wrap_up(
    alice: Person, login: Callable[[str], AbstractContextManager[None]], tmp_path: Path
) -> None:
    session = talked(alice.scope, PLAN)
    job = job_of(alice.scope, session)
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"stuck": [{"steps": [{"stall": True}]}]}))
    variables = {
        "DJANGO_SETTINGS_MODULE": "memberintel.settings",
        "MEMBERINTEL_PROCESS": "worker",
        "MEMBERINTEL_LLM_SCRIPT": str(script),
        "LLM_ROUTE_WRAP_UP": "scripted:stuck",
    }
    ids = [str(job.id), str(alice.scope.tenant_id), str(alice.scope.customer_id)]
    process = subprocess.Popen([sys.executable, "-c", WORK, *ids], cwd=ROOT, env={**os.environ, **variables})
    try:
        until(lambda: Path(f"{script}.calls").exists())
        assert job_of(alice.scope, session).attempt == 1
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    with login("worker"):
        backfill.run(later=tasks.nudge, at_once=True)
        assert wrap_ups(alice.scope, session) == []  # the dead worker's lease has not lapsed
        with scope(alice.scope):
            ClosingJob.objects.filter(id=job.id).update(lease_until=clock.now())
        backfill.run(later=tasks.nudge, at_once=True)
        backfill.run(later=tasks.nudge, at_once=True)
    assert len(wrap_ups(alice.scope, session)) == 1
    assert job_of(alice.scope, session).state == JobState.DONE
