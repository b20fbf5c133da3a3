"""`make bench`: measure, print the table, write `latest.json`."""

from __future__ import annotations

import os
import subprocess
import sys

import django


def main() -> None:
    """Run every benchmark on the services of the environment."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    owner = {**os.environ, "MEMBERINTEL_PROCESS": "owner"}
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], env=owner, check=True)
    django.setup()

    from evals.performance import compaction, log, prefix, results, rls, search, sweep

    results.show(
        [
            *log.figures(),
            *compaction.figures(),
            *prefix.figures(),
            *rls.figures(),
            *search.figures(),
            *sweep.figures(),
        ]
    )


if __name__ == "__main__":
    main()
