"""`make load`: hold the sessions, let the backfill loose on them, compare what came of each with the rules."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import django

ANSWER = {
    "summary": "They plan a discount campaign. It starts on 1 March.",
    "decisions": [{"text": "Run a 20 % discount campaign from 1 March", "messages": [1]}],
    "open_items": [{"text": "Write the e-mail to the members by Friday", "messages": [1]}],
    "new_context": [],
    "next_session_note": "Ask how the discount campaign went.",
    "resolved": [],
}
BACKFILL = ("manage.py", "backfill_wrapups", "--now")


def main() -> None:
    """Print the table; the status is 1 when a session ended otherwise than the rules say."""
    parser = argparse.ArgumentParser(prog="evals.load")
    parser.add_argument("--sessions", type=int, default=10_000)
    number = parser.parse_args().sessions
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    owner = {**os.environ, "MEMBERINTEL_PROCESS": "owner"}
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], env=owner, check=True)
    django.setup()

    from evals.load import sessions

    began = time.monotonic()
    held = list(sessions.hold(number, _progress))
    print(f"{number:,} sessions held and closed in {time.monotonic() - began:.0f} s")
    seconds, most = _backfill()
    found, wrong = sessions.outcome(held)
    due = sessions.expected(held)
    written = sum(count for (_, state), count in found.items() if state == "done")
    print(f"{written:,} wrap-ups in {seconds:.1f} s, {written / seconds:.0f} a second; {most} MiB at most")
    again, _ = _backfill()
    once_more, _ = sessions.outcome(held)
    print(f"a second run in {again:.1f} s: {'nothing changed' if once_more == found else 'THINGS CHANGED'}")
    print(f"\n{'sort':<12}{'state':<12}{'expected':>10}{'found':>10}")
    for sort, state in sorted(due | found):
        print(f"{sort:<12}{state:<12}{due[sort, state]:>10,}{found[sort, state]:>10,}")
    for line in wrong[:20]:
        print(f"wrong: {line}")
    sys.exit(bool(wrong) or found != due or once_more != found)


def _backfill() -> tuple[float, int]:
    """(seconds, MiB at most) of a backfill by the worker's login with a model that answers at once."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"instant": [{"steps": [{"json": ANSWER}]}]}))
        variables = {
            "MEMBERINTEL_PROCESS": "worker",
            "MEMBERINTEL_LLM_SCRIPT": str(script),
            "LLM_ROUTE_WRAP_UP": "scripted:instant",
        }
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, *BACKFILL], env={**os.environ, **variables})
        _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit("the backfill broke")
        return time.monotonic() - began, used.ru_maxrss // 1024


def _progress(done: int) -> None:
    if done % 1_000 == 0:
        print(f"{done:,} …", flush=True)


if __name__ == "__main__":
    main()
