"""`manage.py rotate_kek`: re-wrap every data key with the new key-encryption key."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memberintel.vault import kek, rotate, start
from memberintel.vault.errors import KekRefused
from memberintel.vault.kek import Keks

HELP = """Re-wrap every data key with the key-encryption key that is set now; content is not touched.

1. Make a new key (openssl rand -base64 32), set it as MEMBERINTEL_KEK_FILE or MEMBERINTEL_KEK and the former
   one as MEMBERINTEL_KEK_OLD_FILE or MEMBERINTEL_KEK_OLD, and restart every process.
2. Run this command. It may be stopped and run again at any time.
3. Run it with --retire-old, unset the old variable, restart, and destroy the former key: what was erased
   before is then unreadable in every backup.
"""


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--retire-old", action="store_true", help="afterwards never accept the former keys again"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            keks = kek.configured()
            done, broken = self._rewrap(keks)
            self.stdout.write(f"{done} data keys re-wrapped with {keks.current.fingerprint}.")
            if broken:
                raise CommandError(
                    f"{len(broken)} data keys cannot be unwrapped and were left as they are, no key was retired: "
                    f"{', '.join(map(str, broken))}"
                )
            if options["retire_old"]:
                self._retire(keks)
        except KekRefused as error:
            raise CommandError(str(error)) from None

    def _rewrap(self, keks: Keks) -> tuple[int, list[UUID]]:
        missing = rotate.missing(keks)
        if missing:
            raise KekRefused(
                f"data keys still need the key-encryption key {' and '.join(sorted(missing))}: set it as "
                "MEMBERINTEL_KEK_OLD_FILE or MEMBERINTEL_KEK_OLD. Nothing was changed."
            )
        start.make_known(keks.current.fingerprint)
        done, broken = 0, list[UUID]()
        columns = (TextColumn("Re-wrapping"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task("", total=rotate.remaining(keks))
            for batch in rotate.rewrap(keks):
                done += batch.rewrapped
                broken += batch.broken
                progress.advance(bar, batch.rewrapped + len(batch.broken))
        return done, broken

    def _retire(self, keks: Keks) -> None:
        names = rotate.retire(keks)
        self.stdout.write(f"Retired: {', '.join(names) or 'none, there was no other'}.")
        if names:
            self.stdout.write(
                "Unset MEMBERINTEL_KEK_OLD and MEMBERINTEL_KEK_OLD_FILE; destroy the former key."
            )
