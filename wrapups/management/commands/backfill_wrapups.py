"""Write the wrap-ups that were missed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from wrapups import backfill
from wrapups.tasks import nudge

WORDS = {
    "written": "written",
    "later": "to be tried again",
    "failed": "failed",
    "unfunded": "without a budget",
    "notours": "done by others",
}


class Command(BaseCommand):
    """`manage.py backfill_wrapups`: what the clock does once a day, by hand."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--now",
            action="store_true",
            help="also what was queued a moment ago; by default a job must have waited for ten minutes",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PROCESS != "worker":
            raise CommandError("Only the worker's login may write wrap-ups. Set MEMBERINTEL_PROCESS=worker.")
        columns = (TextColumn("wrap-ups"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns) as bar:
            task = bar.add_task("wrap-ups", total=None)
            counts = backfill.run(
                later=nudge,
                at_once=options["now"],
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        if counts is None:
            self.stdout.write("Another backfill is at work; nothing was done.")
            return
        found = ", ".join(f"{counts[key]} {word}" for key, word in WORDS.items() if counts.get(key))
        self.stdout.write(f"{counts['due']} due: {found or 'nothing to do'}.")
