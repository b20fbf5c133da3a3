"""`python -m evals.smoke`, with DATABASE_URL_*, REDIS_URL and keys set: `make smoke` sets them."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

PURPOSES = ("CHAT", "WRAP_UP", "TITLE", "DISTILL", "COMPACT")


def main() -> int:
    """Set up Django as the web login, run, and say how it went."""
    os.environ.update({f"LLM_ROUTE_{purpose}": "offline:extractive" for purpose in PURPOSES})
    os.environ["MEMBERINTEL_PROCESS"] = "web"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    signal.signal(signal.SIGTERM, _interrupt)
    import django

    django.setup()
    from evals.smoke.run import run

    began = time.monotonic()
    try:
        report = run(Path(os.environ["MEMBERINTEL_DATA"]))
    except KeyboardInterrupt:
        print("Stopped.")
        return 130
    print(f"in {time.monotonic() - began:.0f} seconds")
    return report.finish()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
