"""`make bench`: measure, print the table, write `latest.json`. `ARGS` names the modules to run instead of all."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys

import django

# The backfill comes before the sweep, which leaves it work.
SUBJECTS = ("log", "compaction", "prefix", "rls", "pages", "search", "streams", "backfill", "sweep", "export")


def main() -> None:
    """Run the benchmarks on the services of the environment."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=", ".join(SUBJECTS))
    asked = parser.parse_args().subjects or SUBJECTS
    if unknown := set(asked) - set(SUBJECTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}, only {', '.join(SUBJECTS)}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    owner = {**os.environ, "MEMBERINTEL_PROCESS": "owner"}
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], env=owner, check=True)
    django.setup()

    from evals.performance import results

    modules = [importlib.import_module(f"evals.performance.{subject}") for subject in asked]
    results.show([figure for module in modules for figure in module.figures()])


if __name__ == "__main__":
    main()
