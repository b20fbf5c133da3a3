"""The settings of web processes whose advisor has a slow tool and little patience."""

from memberintel.settings import *  # noqa: F403
from memberintel.settings import ADVISOR_TOOLS as TOOLS
from memberintel.settings import TURN_DEADLINES as DEADLINES

ADVISOR_TOOLS = [*TOOLS, "tests.faults.tools.wait"]
TURN_DEADLINES = {**DEADLINES, "tool": 120}
LLM_SILENCE = {"chat": 5}  # more than a busy machine takes to begin
LLM_PATIENCE = {"tries": 2, "first_wait": 0.1, "longest_wait": 1.0}
