"""`manage.py import_conversations FILE --customer EMAIL`: bring in conversations held elsewhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.guard import verify_login
from memberintel.tenancy.models import User
from memberintel.vault.errors import CannotOpen
from memberintel.vault.start import verify_keks
from sessions.domain import conversation_file
from sessions.domain.conversation_file import BadFile, ConversationFile
from sessions.importer import Outcome, import_conversations


class Command(BaseCommand):
    help = (
        "Import the sessions of a file in the format memberintel-transcript/1, with their original times. They"
        " are closed and their notes written by the worker. The same file again adds nothing; an import that was"
        " interrupted is continued."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--customer", required=True, metavar="EMAIL", help="whose conversations they are")

    def handle(self, *args: Any, file: Path, customer: str, **options: Any) -> None:
        conversations = _read(file)
        verify_login()
        verify_keks()
        whose = _scope_of(customer)
        done: Counter[Outcome] = Counter()
        try:
            with scope(whose):
                self._import(conversations, done)
        except KeyboardInterrupt:
            self.stderr.write(f"Stopped; {_told(done)}. The same command again continues.")
            raise SystemExit(130) from None
        except CannotOpen as error:
            raise CommandError(
                f"The customer's key cannot be had ({error}). {_told(done)[:1].upper()}{_told(done)[1:]}."
            ) from error
        self.stdout.write(f"{customer}: {_told(done)}.")

    def _import(self, file: ConversationFile, done: Counter[Outcome]) -> None:
        columns = (
            TextColumn("[progress.description]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            for imported in progress.track(
                import_conversations(file, now=clock.now()),
                total=len(file.sessions),
                description="Sessions",
            ):
                done[imported.outcome] += 1


def _scope_of(email: str) -> Scope:
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is None:
        raise CommandError(f"There is no customer with the address {email}.")
    if user.tenant_id is None:
        raise CommandError(f"{email} is a member of staff: only customers have conversations.")
    return Scope(user.tenant_id, user.id)


def _read(file: Path) -> ConversationFile:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    try:
        return conversation_file.parse(
            raw, now=clock.now(), most_characters=settings.MESSAGE_LIMIT_CHARACTERS
        )
    except BadFile as bad:
        faults = "\n".join(f"  {fault}" for fault in bad.faults)
        raise CommandError(f"{file} was not imported, nothing of it:\n{faults}") from None


def _told(done: Counter[Outcome]) -> str:
    added = done[Outcome.ADDED] + done[Outcome.OPEN]
    parts = [f"{added} sessions imported"]
    if done[Outcome.KNOWN]:
        parts.append(f"{done[Outcome.KNOWN]} were there already")
    if done[Outcome.OPEN]:
        parts.append(
            f"{done[Outcome.OPEN]} too recent to be over, closed by the clock when its silence has lasted"
        )
    return ", ".join(parts)
