"""Delete what is older than its account keeps it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memberintel.privacy import retention
from memberintel.tenancy.context import outside_scopes
from memberintel.usage import runs


class Command(BaseCommand):
    """`manage.py purge`: what the daily run does with what is too old, by hand. Safe to kill, and to run again."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="tell what would go, and delete nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PROCESS != "worker":
            raise CommandError("This needs the worker's login. Set MEMBERINTEL_PROCESS=worker.")
        with outside_scopes():
            self._tell() if options["dry_run"] else self._purge()

    def _purge(self) -> None:
        try:
            with runs.recorded(retention.RUN) as run:
                retention.step(run)
        except runs.AtWork:
            raise CommandError("Another process is at it.") from None
        except retention.SomeKept as kept:
            raise CommandError(f"{kept} customers broke; the log says why. The rest is done.") from None
        self.stdout.write(f"Deleted: {_words(run.counts)}.")

    def _tell(self) -> None:
        whole: Counter[str] = Counter()
        for tenant, counts in retention.past():
            self.stdout.write(f"{tenant}: {_words(counts)}")
            whole.update(counts)
        self.stdout.write(f"Would be deleted: {_words(whole)}. Nothing was.")


def _words(counts: dict[str, int]) -> str:
    told = [f"{name.replace('_', ' ')} {number:,}" for name, number in sorted(counts.items()) if number]
    return ", ".join(told) or "nothing"
