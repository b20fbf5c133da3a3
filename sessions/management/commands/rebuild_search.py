"""`manage.py rebuild_search`: bring the search index up to date, or make all of it anew."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.guard import verify_login
from memberintel.vault.errors import CannotOpen
from memberintel.vault.start import verify_keks
from sessions import indexer

PAGE: Final = 500
FIRST: Final = UUID(int=0)


class Command(BaseCommand):
    help = (
        "Index the sessions whose search index lags behind their log or was made by older rules. With --all, every"
        " session from its log. What is being rebuilt is found all the while. Stopped, the first is continued by"
        " the same command, the second by the command it prints."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="make the whole index anew")
        parser.add_argument(
            "--before",
            type=_moment,
            metavar="TIME",
            help="with --all: leave what was indexed since then, to continue a run that was stopped",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["before"] and not options["all"]:
            raise CommandError("--before goes with --all.")
        verify_login()
        verify_keks()
        before: datetime | None = None
        if options["all"]:
            before = options["before"] or clock.now()
            self.stdout.write(f"To continue this run: rebuild_search --all --before {before.isoformat()}")
        done = _Done()
        try:
            self._run(before, done)
        except KeyboardInterrupt:
            self.stderr.write(f"Stopped; {done}.")
            raise SystemExit(130) from None
        self.stdout.write(f"{done}.")
        if done.sealed:
            raise CommandError("Sessions whose key cannot be had were left as they are.")

    def _run(self, before: datetime | None, done: _Done) -> None:
        work = indexer.rebuild if before else indexer.index
        columns = (
            SpinnerColumn(),
            TextColumn("[progress.description]{task.description}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task, past = bar.add_task("sessions", total=None), FIRST
            while page := indexer.lagging(past=past, limit=PAGE, before=before):
                for session, who in page:
                    with scope(who):
                        done.add(session, work)
                    bar.update(task, description=str(done))
                past = page[-1][0]


class _Done:
    """What a run has done so far."""

    def __init__(self) -> None:
        self.sessions = self.texts = self.sealed = 0

    def __str__(self) -> str:
        left = f", {self.sealed} cannot be opened" if self.sealed else ""
        return f"{self.sessions} sessions indexed, {self.texts} texts{left}"

    def add(self, session: UUID, work: Callable[[UUID], int]) -> None:
        """Index one session; one whose key cannot be had keeps the index it has."""
        try:
            self.texts += work(session)
            self.sessions += 1
        except CannotOpen:
            self.sealed += 1


def _moment(given: str) -> datetime:
    moment = parse_datetime(given)
    if moment is None or moment.tzinfo is None:
        raise ValueError("a moment with its time zone")
    return moment
