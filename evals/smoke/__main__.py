"""`python -m evals.smoke`, with DATABASE_URL_*, REDIS_URL and keys set: `make smoke` sets them.

The offline advisor answers; with PROVIDER=loopback the default models do, their APIs being a server of our own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from evals.loopback.scenario import Scenario
from evals.loopback.server import HOST, running

WINDOW = 40_000  # tokens of the largest request: a few long messages outgrow it

PURPOSES = ("CHAT", "WRAP_UP", "TITLE", "DISTILL", "COMPACT")


def main() -> int:
    """Set up Django as the web login, run, and say how it went."""
    signal.signal(signal.SIGTERM, _interrupt)
    with ExitStack() as stack:
        try:
            return _play(_providers(stack))
        except KeyboardInterrupt:
            print("Stopped.")
            return 130


def _providers(stack: ExitStack) -> Scenario | None:
    """Sets the variables that say who answers; the loopback server's scenario if it is that."""
    chosen = os.environ.get("PROVIDER", "offline")
    if chosen == "offline":
        os.environ.update({f"LLM_ROUTE_{purpose}": "offline:extractive" for purpose in PURPOSES})
        return None
    if chosen != "loopback":
        sys.exit(f"PROVIDER must be offline or loopback, not {chosen!r}.")
    for name in [name for name in os.environ if name.startswith("LLM_ROUTE_")]:
        del os.environ[name]
    server = stack.enter_context(running())
    os.environ.update(server.anthropic() | server.vertex())
    os.environ["NO_PROXY"] = ",".join(filter(None, (os.environ.get("NO_PROXY"), HOST)))
    return server.scenario


def _play(scenario: Scenario | None) -> int:
    os.environ["MEMBERINTEL_PROCESS"] = "web"
    os.environ["LLM_WINDOW_MOST"] = str(WINDOW)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    import django

    django.setup()
    from evals.smoke.run import run

    began = time.monotonic()
    report = run(Path(os.environ["MEMBERINTEL_DATA"]), scenario)
    print(f"in {time.monotonic() - began:.0f} seconds")
    return report.finish()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
