"""`python -m evals.loopback [PORT]`: the server on its own, with the variables that lead to it."""

from __future__ import annotations

import signal
import sys

from evals.loopback.server import running

PORT = 8765


def main() -> int:
    """Serve until stopped."""
    with running(int(sys.argv[1]) if len(sys.argv) > 1 else PORT) as server:
        for name, value in (server.anthropic() | server.vertex()).items():
            print(f"export {name}={value}")
        print("# for Gemini with a key instead of Vertex AI: unset GOOGLE_CLOUD_PROJECT, and")
        print(f"export GEMINI_API_KEY={server.gemini_with_key()['GEMINI_API_KEY']}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
