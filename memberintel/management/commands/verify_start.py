"""`manage.py verify_start`: what a process checks before it serves, asked once, with one plain sentence if not."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from memberintel.checks import verify_start


class Command(BaseCommand):
    help = "Check that the database answers, that its login is bound by row-level security, and that the keys fit."

    def handle(self, *args: Any, **options: Any) -> None:
        verify_start()
