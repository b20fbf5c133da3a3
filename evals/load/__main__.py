"""`make load`: hold the sessions, let the backfill loose on them, compare what came of each with the rules."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import django


def main() -> None:
    """Print the table; the status is 1 when a session ended otherwise than the rules say."""
    parser = argparse.ArgumentParser(prog="evals.load")
    parser.add_argument("--sessions", type=int, default=10_000)
    number = parser.parse_args().sessions
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    owner = {**os.environ, "MEMBERINTEL_PROCESS": "owner"}
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], env=owner, check=True)
    django.setup()

    from evals.load import backfill, sessions

    began = time.monotonic()
    held = list(sessions.hold(number, _progress))
    print(f"{number:,} sessions held and closed in {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    most = backfill.run()
    seconds = time.monotonic() - began
    found, wrong = sessions.outcome(held)
    due = sessions.expected(held)
    written = sum(count for (_, state), count in found.items() if state == "done")
    print(f"{written:,} wrap-ups in {seconds:.1f} s, {written / seconds:.0f} a second; {most} MiB at most")
    began = time.monotonic()
    backfill.run()
    again = time.monotonic() - began
    once_more, _ = sessions.outcome(held)
    print(f"a second run in {again:.1f} s: {'nothing changed' if once_more == found else 'THINGS CHANGED'}")
    print(f"\n{'sort':<12}{'state':<12}{'expected':>10}{'found':>10}")
    for sort, state in sorted(due | found):
        print(f"{sort:<12}{state:<12}{due[sort, state]:>10,}{found[sort, state]:>10,}")
    for line in wrong[:20]:
        print(f"wrong: {line}")
    sys.exit(bool(wrong) or found != due or once_more != found)


def _progress(done: int) -> None:
    if done % 1_000 == 0:
        print(f"{done:,} …", flush=True)


if __name__ == "__main__":
    main()
