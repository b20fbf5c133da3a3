"""A backfill in a process of its own, as the worker's login, with a model that answers at once."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from evals import memory

ANSWER = {
    "summary": "They plan a discount campaign. It starts on 1 March.",
    "decisions": [{"text": "Run a 20 % discount campaign from 1 March", "messages": [1]}],
    "open_items": [{"text": "Write the e-mail to the members by Friday", "messages": [1]}],
    "new_context": [],
    "next_session_note": "Ask how the discount campaign went.",
    "resolved": [],
}
COMMAND = ("manage.py", "backfill_wrapups", "--now")


def run() -> int:
    """MiB of memory it took at most. Ends this process when it broke."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"instant": [{"steps": [{"json": ANSWER}]}]}))
        variables = {
            "MEMBERINTEL_PROCESS": "worker",
            "MEMBERINTEL_LLM_SCRIPT": str(script),
            "LLM_ROUTE_WRAP_UP": "scripted:instant",
        }
        return memory.most([sys.executable, *COMMAND], env={**os.environ, **variables})
