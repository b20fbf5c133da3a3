"""The settings of processes whose advisor has a slow tool and little patience, and whose clock can be set."""

import os
from datetime import UTC, datetime
from pathlib import Path

from memberintel.lib import clock
from memberintel.settings import *  # noqa: F403
from memberintel.settings import ADVISOR_TOOLS as TOOLS
from memberintel.settings import LLM_DEADLINES as LIMITS
from memberintel.settings import LLM_WINDOWS as WINDOWS
from memberintel.settings import TURN_DEADLINES as DEADLINES

ADVISOR_TOOLS = [*TOOLS, "tests.faults.tools.wait", "tests.faults.tools.shout"]
TURN_DEADLINES = {**DEADLINES, "tool": 120, "compact": 1, "recall": 60}
LLM_SILENCE = {"chat": int(os.environ.get("MEMBERINTEL_FAULTS_SILENCE", "120"))}
LLM_SILENCE_DEFAULT = 120
LLM_DEADLINES = {**LIMITS, "wrap_up": 120}  # the notes wait for a gate
LLM_PATIENCE = {"tries": 2, "first_wait": 0.1, "longest_wait": 1.0}
WRAP_UP_WAIT_SECONDS = float(os.environ.get("MEMBERINTEL_FAULTS_WAIT", "1"))
LLM_WINDOWS = {**WINDOWS, "scripted:narrow": 6_000}


def _now() -> datetime:
    """What the file says, if there is one."""
    try:
        return datetime.fromisoformat(Path(os.environ["MEMBERINTEL_FAULTS_CLOCK"]).read_text())
    except (KeyError, FileNotFoundError):
        return datetime.now(UTC)


clock.source = _now
