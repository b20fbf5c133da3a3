"""`python -m memberintel.embedded run` and `exec`: the product, or one command, with its services up."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from memberintel import env
from memberintel.embedded import private_folder, supervisor
from memberintel.embedded.place import CHECKOUT


def main() -> int:
    """Parse the command line and do it; the exit status."""
    options = _parser().parse_args()
    _read_dotenv(CHECKOUT / ".env")
    data = env.path("MEMBERINTEL_DATA", CHECKOUT / ".data").resolve()
    if options.do == "run":
        supervisor.run(data, env.whole("PORT", 8000))
        return 0
    if options.private:
        with private_folder() as private:
            return supervisor.execute(private, options.command)
    return supervisor.execute(data, options.command)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memberintel.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="do", required=True)
    commands.add_parser("run", help="serve the product until Ctrl-C")
    execute = commands.add_parser("exec", help="run a command while the services are up")
    execute.add_argument("--private", action="store_true", help="on a fresh data folder, removed afterwards")
    execute.add_argument("command", nargs="+", help="the command, after --")
    return parser


def _read_dotenv(file: Path) -> None:
    """Take NAME=value lines for variables that are not set yet. No quoting, no expansion."""
    if not file.exists():
        return
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise env.Misconfigured(f"{file.name}, line {number}: expected NAME=value.")
        os.environ.setdefault(name.strip(), value.strip())


if __name__ == "__main__":
    sys.exit(main())
