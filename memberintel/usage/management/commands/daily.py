"""Do the day's work of the clock."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memberintel.tenancy.context import outside_scopes
from memberintel.usage import daily
from memberintel.usage.daily import Step


class Command(BaseCommand):
    """`manage.py daily`: what the clock does by itself, by hand. Fails when a step broke."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--now", action="store_true", help="also the steps that have ended well today")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PROCESS != "worker":
            raise CommandError("The daily run needs the worker's login. Set MEMBERINTEL_PROCESS=worker.")
        broke = []
        with outside_scopes():
            for step in daily.run(at_once=options["now"]):
                self.stdout.write(f"{step.kind}: {_words(step)}")
                broke += [step.kind] if step.error else []
        if broke:
            raise CommandError(f"{', '.join(broke)} broke. The others are done; the log says where.")
        self.stdout.write("Every step that was due is done.")


def _words(step: Step) -> str:
    if step.at_work:
        return "another process is at it"
    counted = ", ".join(f"{name} {number}" for name, number in sorted(step.counts.items()))
    if step.error:
        return f"broke ({step.error}); until then {counted or 'nothing'}"
    return counted or "nothing to do"
