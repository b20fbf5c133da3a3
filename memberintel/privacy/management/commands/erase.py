"""`manage.py erase --resume`: finish every erasure that was begun."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memberintel.privacy import erase


class Command(BaseCommand):
    help = "Finish every erasure that was begun and not done. Safe to kill, and to run beside another."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--resume", action="store_true", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        for erasure in erase.unfinished():
            self.stdout.write(f"{erasure.id}")
            try:
                erase.proceed(erasure, told=lambda step: self.stdout.write(f"  {step}"))
            except Exception as error:
                broken += 1
                self.stderr.write(f"  broke: {type(error).__name__}")
        if waiting := len(erase.unfinished()) - broken:
            self.stdout.write(
                f"{waiting} to be swept once more in some minutes; the clock does it, or this command."
            )
        if broken:
            raise CommandError(f"{broken} are not done; run it again.")
