"""A process that does a daily run of one step: says "begun", and ends when it is told to by a line.

python -m tests.usage.stepper KIND
"""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")


def say(words: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def step(run: object) -> None:
    """Counts one, and waits."""
    run.count("begun")  # type: ignore[attr-defined]
    say("begun")
    sys.stdin.readline()
    run.count("ended")  # type: ignore[attr-defined]


def main() -> None:
    """Do the step, and say what became of it."""
    django.setup()
    from django.conf import settings

    from memberintel.usage import daily, runs

    runs.RENEW_SECONDS = 0.1
    settings.DAILY_STEPS = {sys.argv[1]: "tests.usage.stepper.step"}
    for done in daily.run():
        say("at work" if done.at_work else done.error or "done")


if __name__ == "__main__":
    main()
