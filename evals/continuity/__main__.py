"""`python -m evals.continuity`, with DATABASE_URL_*, REDIS_URL and keys set: `make evals` sets them.

PROVIDER says who advises and writes the notes: offline (the default), anthropic, gemini (both with their keys), or
loopback, a server of our own behind the real SDKs. RECORD=1 keeps the result among those a release is judged by.
CASES=word plays only the cases whose name holds the word.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

PURPOSES = ("CHAT", "WRAP_UP", "JOURNAL", "MOOD", "DISTILL", "COMPACT", "TITLE", "JUDGE")


def main() -> int:
    """Set up Django as the web login, migrate, run; the exit status."""
    provider = os.environ.get("PROVIDER", "offline")
    with ExitStack() as stack:
        _advised_by(provider, stack)
        os.environ["MEMBERINTEL_PROCESS"] = "web"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
        import django

        django.setup()
        from evals.continuity import cases, results
        from evals.continuity.run import run
        from evals.smoke.stage import manage

        migrated = manage("migrate", "--no-input", "--verbosity", "0", process="owner")
        if migrated.returncode:
            print(migrated.stderr[-2000:], file=sys.stderr)
            return 1
        word = os.environ.get("CASES", "")
        chosen = [case for case in cases.load() if word in case.name]
        if not chosen:
            sys.exit(f"No case has {word!r} in its name.")
        kept = os.environ.get("RECORD") == "1" and not word and provider != "loopback"
        folder = results.KEPT if kept else Path(os.environ["MEMBERINTEL_DATA"]) / "results"
        return run(chosen, manage, provider=provider, folder=folder)


def _advised_by(provider: str, stack: ExitStack) -> None:
    """Sets the variables that say who answers."""
    if provider == "offline":
        os.environ.update({f"LLM_ROUTE_{purpose}": "offline:extractive" for purpose in PURPOSES})
    elif provider == "loopback":
        from evals.loopback.server import HOST, running

        server = stack.enter_context(running())
        os.environ.update(server.anthropic() | server.vertex())
        os.environ["NO_PROXY"] = ",".join(filter(None, (os.environ.get("NO_PROXY"), HOST)))
    elif provider not in {"anthropic", "gemini"}:
        sys.exit(f"PROVIDER must be offline, loopback, anthropic or gemini, not {provider!r}.")
    else:
        _only(provider)


def _only(provider: str) -> None:
    """Leave that provider's keys alone: then its models serve every purpose."""
    other = {
        "anthropic": ("GOOGLE_CLOUD_PROJECT", "GEMINI_API_KEY"),
        "gemini": ("ANTHROPIC_API_KEY",),
    }
    for name in other[provider]:
        os.environ.pop(name, None)
    from memberintel.env import text

    own = {"anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}[provider]
    if not text(own, " ").strip() and not (
        provider == "gemini" and text("GOOGLE_CLOUD_PROJECT", " ").strip()
    ):
        sys.exit(f"Set {own} to run the cases on {provider}.")


if __name__ == "__main__":
    sys.exit(main())
