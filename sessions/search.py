"""Searching a customer's sealed words: hashes of the terms find the newest hits, opened texts are ranked.

The database finds, by keyed hashes alone, the newest HITS events that have every word asked for. What a hit is
worth, quoted phrases and snippets are worked out here, on the opened texts (`sessions.domain.search`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from memberintel.lib import clock, terms
from memberintel.lib.text import clean
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.tenancy.rows import binary_cursor
from memberintel.vault import blind
from memberintel.vault.errors import CannotOpen
from sessions import log
from sessions.domain import events as kinds
from sessions.domain import search as rules
from sessions.domain.search import Match, Piece, Query, Reading
from sessions.models import Session

HITS: Final = 1_000
"""The newest hits that are ranked."""
READ_BYTES: Final = 8 * 1024 * 1024
"""Sealed bytes opened for one search: a thousand hits of a usual size, fewer of the longest."""
PAGE: Final = 20
LONGEST: Final = rules.MOST_CHARACTERS
"""Characters of a query that are read."""

By = Literal["customer", "advisor", "summary"]
WHO: Final[Mapping[str, By]] = {
    kinds.USER_MESSAGE: "customer",
    kinds.ASSISTANT_TURN: "advisor",
    kinds.COMPACTION_APPLIED: "summary",
}


@dataclass(frozen=True, slots=True)
class Hit:
    """A text that was found: where it stands, whose it is, and the part that has what was asked for.

    `title` is that of its session, None when it has none or when it cannot be opened (`title_readable` is then
    False). A hit that is not `readable` was found by the index and cannot be opened: it has no snippet.
    """

    session: UUID
    seq: int
    by: By
    at: datetime
    title: str | None
    title_readable: bool
    snippet: tuple[Piece, ...]
    readable: bool
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """A page of hits, the best first. `total` hits were ranked; `more` that there may be older ones beyond them."""

    hits: tuple[Hit, ...] = ()
    total: int = 0
    more: bool = False
    words: int = 0
    cut: bool = False


def search(query: str, limit: int = PAGE) -> list[Hit]:
    """The best hits for what a person typed, at most `limit`; [] for a query without words.

    All words must occur; a part in quotes must occur as it is written. In the scope of the customer; CannotOpen
    when their key cannot be had.
    """
    return list(find(query, limit=limit).hits)


def find(query: str, *, limit: int = PAGE, skip: int = 0, now: datetime | None = None) -> Found:
    """As `search`, from the hit after the first `skip`, with how many there are."""
    asked = rules.parse(clean(query))
    if not asked.words:
        return Found(cut=asked.cut)
    with transaction.atomic():
        languages = _languages()
        rows, more = _newest(_lexemes(asked, languages)) if languages else ([], False)
        opened = [place for place, row in enumerate(rows) if row.text is not None]
        reading = rules.read(asked, [row.text for row in rows if row.text is not None], languages)
        ranked = _rank(reading, rows, opened, now or clock.now())
        shown = ranked[skip : skip + limit]
        titles = _titles({rows[match.place].session for match in shown})
    read = {place: number for number, place in enumerate(opened)}
    hits = []
    for place, score in shown:
        snippet = reading.snippet(read[place]) if place in read else None
        hits.append(_hit(rows[place], score, titles[rows[place].session], snippet))
    return Found(tuple(hits), len(ranked), more, len(asked.words), asked.cut)


def address(hit: Hit) -> str:
    """The part of a transcript's address that leads to the hit."""
    return f"?at={hit.seq}#e{hit.seq}"


# --- finding ---------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """An event that was found; without a text it could not be opened.

    A thousand are made for a search: ids and times stay as they came, and of its content only the text is kept.
    """

    session: str
    seq: int
    kind: str
    at: float
    text: str | None


_IN_USE: Final = (
    "SELECT language FROM unnest(%s::text[]) AS language WHERE EXISTS (SELECT FROM search_progress p"
    " WHERE p.tenant_id = %s AND p.customer_id = %s AND p.language = language.language)"
)


def _languages() -> list[str]:
    """Those in which the customer's sessions are indexed: of late, in that of their profile. [] without any."""
    known = [*terms.STEMMERS, terms.PLAIN]
    with connection.cursor() as cursor:
        cursor.execute(_IN_USE, [known, current_tenant_id(), current_customer_id()])
        return [language for (language,) in cursor]


def _lexemes(asked: Query, languages: Sequence[str]) -> str:
    """The query as the database gets it. Made of hashes, whose characters mean nothing between quotes."""
    blinder = blind.blinder()
    lists = [blinder.hashes(alternatives) for alternatives in asked.alternatives(languages)]
    return " & ".join("(" + " | ".join(f"'{found}'" for found in each) + ")" for each in lists)


# Each hit's event is looked up by its key: a join would be free to read the whole log instead, and without
# statistics of the customer it does.
_FIND: Final = """
SELECT session_id::text, seq, kind, extract(epoch FROM created_at)::float8, uuid_send(id), sealed, hits FROM (
  SELECT e.*, hit.place, count(*) OVER () AS hits,
         sum(octet_length(e.sealed)) OVER (ORDER BY hit.place ROWS UNBOUNDED PRECEDING) AS bytes
  FROM app.search_terms(%s, %s) WITH ORDINALITY AS hit (session_id, seq, place) CROSS JOIN LATERAL (
    SELECT session_id, seq, id, kind, sealed, created_at FROM session_events
    WHERE tenant_id = %s AND session_id = hit.session_id AND seq = hit.seq LIMIT 1) AS e) AS newest
WHERE bytes <= %s OR place <= %s ORDER BY place
"""


def _newest(lexemes: str) -> tuple[list[_Row], bool]:
    """The newest hits, newest first; whether there may be older ones."""
    values: list[Any] = [lexemes, HITS, current_tenant_id(), READ_BYTES, PAGE]
    with binary_cursor() as cursor:
        cursor.execute(_FIND, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    contents = log.open_contents((row[4], row[5]) for row in found)
    rows = [
        _Row(session, seq, kind, at, _text(kind, content))
        for (session, seq, kind, at, *_), content in zip(found, contents, strict=True)
    ]
    hits = found[0][6] if found else 0
    return rows, hits >= HITS or len(rows) < hits


def _text(kind: str, content: Mapping[str, Any]) -> str | None:
    return None if content is kinds.UNREADABLE else rules.text_of(kind, content)


# --- ranking and showing ---------------------------------------------------------------------------------


def _rank(reading: Reading, rows: Sequence[_Row], opened: Sequence[int], now: datetime) -> list[Match]:
    """The hits that hold, the best first; then those that cannot be opened, which nobody can judge."""
    moment = now.timestamp()
    ranked = reading.rank([moment - rows[place].at for place in opened])
    sealed = [Match(place, 0.0) for place in sorted(set(range(len(rows))) - set(opened))]
    return [Match(opened[place], score) for place, score in ranked] + sealed


@dataclass(frozen=True, slots=True)
class _Title:
    text: str | None
    readable: bool


_TITLED: Final = ("id", "tenant_id", "customer_id", "title")


def _titles(sessions: set[str]) -> dict[str, _Title]:
    found = {str(row.id): _title(row) for row in Session.objects.filter(id__in=sessions).only(*_TITLED)}
    return {session: found.get(session, _Title(None, readable=True)) for session in sessions}


def _title(session: Session) -> _Title:
    try:
        return _Title(session.title, readable=True)
    except CannotOpen:
        return _Title(None, readable=False)


def _hit(row: _Row, score: float, title: _Title, snippet: tuple[Piece, ...] | None) -> Hit:
    return Hit(
        session=UUID(row.session),
        seq=row.seq,
        by=WHO[row.kind],
        at=datetime.fromtimestamp(row.at, UTC),
        title=title.text,
        title_readable=title.readable,
        snippet=snippet or (),
        readable=snippet is not None,
        score=score,
    )
