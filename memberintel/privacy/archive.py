"""An archive while it is written: a zip that goes out as it is made, from pages of rows read in short transactions.

What is held in memory is one page of rows and a few blocks of the zip, whatever there is to write.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any, Final

from django.db import connections, models, transaction

from memberintel.lib import clock
from memberintel.privacy import rows

FORMAT: Final = "memberintel-export/1"
PAGE: Final = 50
_BLOCK: Final = 64 * 1024


def read[T](work: Callable[[], T]) -> T:
    """What `work` reads, in a transaction of its own; no connection is held afterwards."""
    try:
        with transaction.atomic():
            return work()
    finally:
        if not transaction.get_connection().in_atomic_block:
            connections.close_all()


def pages[T](after: Callable[[T | None], list[T]]) -> Iterator[T]:
    """Everything `after` gives, a page at a time: it is called with the last of the page before, first with None."""
    last: T | None = None
    while page := read(partial(after, last)):
        yield from page
        last = page[-1]
        if len(page) < PAGE:
            return


def of_model[M: models.Model](found: Callable[[], models.QuerySet[M]]) -> Iterator[M]:
    """The rows of a query by their ids, a page at a time."""

    def after(last: M | None) -> list[M]:
        rows = found().order_by("pk")
        return list((rows if last is None else rows.filter(pk__gt=last.pk))[:PAGE])

    return pages(after)


class Archive:
    """Takes what participants write, one file after the other; `close` adds the manifest."""

    def __init__(self, out: IO[bytes], about: Mapping[str, Any]) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6, allowZip64=True)
        self._about = dict(about)
        self.counts: Counter[str] = Counter()
        self.unreadable: Counter[str] = Counter()

    def text(self, name: str, pieces: Iterable[str]) -> None:
        """A file of these pieces of text; none at all when there are no pieces."""
        pieces = iter(pieces)
        first = next(pieces, None)
        if first is None:
            return
        entry = zipfile.ZipInfo(name, clock.now().timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED  # an entry of its own does not take the archive's
        entry.external_attr = 0o600 << 16
        with self._zip.open(entry, "w", force_zip64=True) as file:
            buffered = bytearray(first.encode(errors="replace"))
            for piece in pieces:
                buffered += piece.encode(errors="replace")
                if len(buffered) >= _BLOCK:
                    file.write(bytes(buffered))
                    buffered.clear()
            file.write(bytes(buffered))

    def lines(self, table: str, found: Iterable[Mapping[str, Any]]) -> None:
        """`data/<table>.jsonl`, a line for each; counted."""

        def told() -> Iterator[str]:
            for line in found:
                self.counts[table] += 1
                self.unreadable[table] += bool(line.get(rows.UNREADABLE))
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"

        self.text(f"data/{table}.jsonl", told())

    def table[M: models.Model](
        self,
        model: type[M],
        hidden: Iterable[str] = (),
        found: Callable[[], models.QuerySet[M]] | None = None,
    ) -> None:
        """The rows of a model in the current scope, or those `found` gives."""
        without = frozenset(hidden)
        source = found or model._default_manager.all
        self.lines(model._meta.db_table, (rows.as_line(row, without) for row in of_model(source)))

    def abandon(self) -> None:
        """Write nothing more, not even when the zip is collected: whoever reads it is gone, or must not take it."""
        self._zip.fp = None

    def close(self) -> None:
        """Write the manifest and the end of the zip."""
        manifest = {
            "format": FORMAT,
            **self._about,
            "rows": dict(sorted(self.counts.items())),
            "unreadable": {table: count for table, count in sorted(self.unreadable.items()) if count},
        }
        self.text("manifest.json", [json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"])
        self._zip.close()
