"""`manage.py demo`: give an empty database accounts to sign in with, one of them with a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from memberintel.accounts.access import scope_of
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from wrapups.demo import accounts, history
from wrapups.demo.accounts import Note

PEOPLE = ((accounts.PRO, "Pro customer"), (accounts.FREE, "Free customer"), (accounts.STAFF, "staff"))


class Command(BaseCommand):
    help = (
        "On an empty database: make a Pro customer with a short history, a Free customer and a member of staff, and"
        " print their passwords; on later runs print them again. Does nothing where other accounts were first, and"
        " nothing outside the embedded mode unless forced."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--force", action="store_true", help="also on a database of your own")

    def handle(self, *args: Any, force: bool = False, **options: Any) -> None:
        if not (settings.EMBEDDED or force):
            return
        path = settings.DATA_DIR / "demo.json"
        note = _made(path)
        if note is not None:
            self._tell(note, path)

    def _tell(self, note: Note, path: Path) -> None:
        self.stdout.write(f"Demo accounts (kept in {path}):")
        for email, who in PEOPLE:
            self.stdout.write(f"  {who:<14} {email:<28} {note.passwords[email]}")
        self.stdout.write(
            "  Staff set up a second factor when they first sign in; README.md says how without an app."
        )


def _made(path: Path) -> Note | None:
    """Make what is missing; the note, or None where this is somebody's own database."""
    note = Note.read(path)
    if not User.objects.exists():
        note = Note.fresh(clock.now().date())
    elif note is None or note.complete:
        return note if User.objects.filter(email=accounts.PRO).exists() else None
    note.write(path)  # first: a run that is interrupted must not lose the passwords it has set
    pro = accounts.make(note.passwords)
    with scope(scope_of(pro)):
        history.write(day=note.day, now=clock.now())
    note = note.completed()
    note.write(path)
    return note
