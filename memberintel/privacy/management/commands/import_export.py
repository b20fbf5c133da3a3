"""`manage.py import_export FILE --customer EMAIL`: bring an archive back into an empty account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from rich.progress import Progress

from memberintel.accounts.access import scope_of
from memberintel.privacy import intake
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from memberintel.vault.errors import VaultError


class Command(BaseCommand):
    help = (
        "Bring the archive a customer has taken (Privacy, Take a copy) into an empty account, whole or not at all."
        " Run it as the owner of the database: MEMBERINTEL_PROCESS=owner."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--customer", required=True, metavar="EMAIL", help="whose empty account it is for"
        )

    def handle(self, *args: Any, file: Path, customer: str, **options: Any) -> None:
        self._refuse_other_logins()
        user = User.objects.filter(email=customer.lower(), tenant__isnull=False, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no customer with the address {customer}.")
        if not file.is_file():
            raise CommandError(f"There is no file {file}.")
        with Progress(disable=not self.stdout.isatty()) as bar:
            task = bar.add_task("Reading", total=None)
            try:
                with scope(scope_of(user)):
                    counts = intake.bring_in(
                        file, told=lambda table, count: bar.update(task, description=f"{table}: {count:,}")
                    )
            except (intake.Refused, VaultError) as error:
                raise CommandError(f"Nothing was brought in: {error}") from None
        for table, count in sorted(counts.items()):
            self.stdout.write(f"{table:<24} {count:>9,}")

    def _refuse_other_logins(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT session_user")
            (login,) = cursor.fetchone()
        if login != "owner":
            raise CommandError(
                "Run it as the owner of the database: MEMBERINTEL_PROCESS=owner manage.py import_export ..."
            )
