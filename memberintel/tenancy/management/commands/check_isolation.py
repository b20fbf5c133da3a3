"""`manage.py check_isolation`: fail when the database would let one tenant reach another's rows."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memberintel.tenancy.drift import findings


class Command(BaseCommand):
    help = "Read the database's catalogue as the application's login and name every drift from the tenancy rules."

    def handle(self, *args: Any, **options: Any) -> None:
        with connection.cursor() as cursor:
            found = findings(cursor)
        for finding in found:
            self.stderr.write(str(finding))
        if found:
            raise CommandError(f"check_isolation: {len(found)} faults")
        self.stdout.write("check_isolation: no fault found")
