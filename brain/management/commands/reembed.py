"""`manage.py reembed`: after a change of the embedder, make the vectors of MEMORY and of shared knowledge anew."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from brain import embedding
from brain.memory import reembed
from brain.shared import vectors as shared
from memberintel.tenancy.context import SYSTEM
from memberintel.tenancy.guard import verify_login
from memberintel.vault.start import verify_keks


class Command(BaseCommand):
    help = (
        "Make vectors of the embedder that is set now for all entries of MEMORY, and articles of shared knowledge, that"
        " have another's, or none. Until then they are compared by their words. It may be stopped, run again, and run"
        " twice at once."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        verify_login()
        verify_keks()
        found = asyncio.run(embedding.vectors(["which embedder is this?"], SYSTEM))
        if found is None:
            raise CommandError("No embedder answers; nothing was changed. See LLM_ROUTE_EMBED.")
        embedder = found[0].embedder
        columns = (TextColumn("Embedding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task("", total=reembed.left(embedder) + shared.left(embedder))
            try:
                articles = shared.run(embedder, lambda count: progress.advance(bar, count))
                done = reembed.run(embedder, lambda count: progress.advance(bar, count))
            except reembed.NoEmbedder:
                raise CommandError("The embedder stopped answering. Run this again to go on.") from None
        self.stdout.write(f"{done.embedded} entries and {articles} articles embedded by {embedder}.")
        if done.sealed:
            raise CommandError(f"{done.sealed} entries cannot be opened and were left as they are.")
