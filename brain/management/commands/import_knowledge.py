"""`manage.py import_knowledge`: bring articles of shared knowledge from Markdown files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError

from brain.domain.knowledge import NotAnArticle, Written, read
from brain.shared import actions

STARTER = Path(__file__).parent.parent.parent / "shared" / "starter"


class Command(BaseCommand):
    help = (
        "Write and publish one article of shared knowledge for each file DIR/<slug>.md: a front matter with title and"
        " topic, then the text. Without DIR, the set that comes with the product. Files that have not changed, and"
        " articles that staff have changed, are left alone. Run it with MEMBERINTEL_PROCESS=owner, like migrate."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", nargs="?", type=Path, default=STARTER, metavar="DIR")
        parser.add_argument("--draft", action="store_true", help="do not publish; staff do so on the desk")

    def handle(self, *args: Any, folder: Path, draft: bool, verbosity: int, **options: Any) -> None:
        articles = self._read(folder)
        try:
            done = actions.bring_in(articles, using="default", publishing=not draft)
        except ProgrammingError as error:
            raise CommandError(
                "This login may not write shared knowledge; set MEMBERINTEL_PROCESS=owner."
            ) from error
        if verbosity:
            self.stdout.write(
                f"{len(done.new)} new, {len(done.changed)} changed, {len(done.same)} as before, "
                f"{len(done.kept)} left as staff have made them."
            )

    def _read(self, folder: Path) -> list[Written]:
        files = sorted(folder.glob("*.md"))
        if not files:
            raise CommandError(f"There are no files *.md in {folder}.")
        articles, faults = [], []
        for file in files:
            try:
                articles.append(read(file.stem, file.read_bytes()))
            except NotAnArticle as error:
                faults.append(str(error))
        if faults:
            raise CommandError("Nothing was imported:\n" + "\n".join(faults))
        return articles
