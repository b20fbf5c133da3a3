"""Finding wrap-ups by their words. A customer has hundreds of them, each a few hundred words: they are opened and read,
newest first, and need no index beside the sealed texts that would have to be kept true."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from memberintel.lib import terms
from memberintel.lib.text import clean
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.vault import cipher, keyring
from memberintel.vault.errors import Damaged

READ: Final = 1_000
"""The newest wrap-ups that are read for a search."""
LONGEST: Final = 500
"""Characters of a query that are read."""
_AT_ONCE: Final = 250
_TEXTS: Final = ("summary", "next_session_note")
_LISTS: Final = ("decisions", "open_items", "new_context")

_PAGE: Final = """
SELECT id, session_last_activity_at, summary, next_session_note, decisions, open_items, new_context
FROM session_logs WHERE tenant_id = %(tenant)s AND customer_id = %(customer)s
  AND (%(before)s::timestamptz IS NULL OR (session_last_activity_at, id) < (%(before)s, %(before_id)s::uuid))
  AND (%(since)s::timestamptz IS NULL OR session_last_activity_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR session_last_activity_at < %(until)s)
  AND (%(among)s::uuid[] IS NULL OR id = ANY(%(among)s))
ORDER BY session_last_activity_at DESC, id DESC LIMIT %(limit)s
"""


def find(
    query: str,
    *,
    limit: int,
    before: datetime | None = None,
    before_id: UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    among: Collection[UUID] | None = None,
) -> list[UUID]:
    """Ids of the newest wrap-ups that have every word of `query`, or a word that begins with it, at most `limit`.

    Of sessions last active before the cursor, from `since` until before `until`, and `among` these alone. [] for a
    query without words. One that cannot be opened is not found; CannotOpen when the customer's key cannot be had.
    """
    words = set(terms.read(terms.fold(clean(query)[:LONGEST])))
    where = {"before": before, "before_id": before_id, "since": since, "until": until}
    where["among"] = None if among is None else list(among)  # type: ignore[assignment]
    found: list[UUID] = []
    for wrap_up, text in _read(where) if words else ():
        if all(word in text for word in words) and _has(text, words):
            found.append(wrap_up)
            if len(found) == limit:
                break
    return found


def _has(text: str, words: Collection[str]) -> bool:
    """Whether each word begins one of the text's: "art" is not found in "start"; in a script without spaces it is."""
    own = terms.read(text)
    return all(terms.unspaced(word) or any(each.startswith(word) for each in own) for word in words)


def _read(where: dict[str, Any]) -> Iterator[tuple[UUID, str]]:
    """(id, folded text) of the newest READ wrap-ups."""
    opener = cipher.Opener(keyring.customer_key())
    owner = current_tenant_id(), current_customer_id()
    aads = [cipher.column_aad(*owner, "session_logs", column) for column in (*_TEXTS, *_LISTS)]
    read = 0
    while read < READ:
        with connection.cursor() as cursor:
            cursor.execute(_PAGE, {**where, "tenant": owner[0], "customer": owner[1], "limit": _AT_ONCE})
            rows = cursor.fetchall()
        for wrap_up, _, *sealed in rows:
            try:
                plain = [
                    opener.open(bytes(each), aad + wrap_up.bytes)
                    for each, aad in zip(sealed, aads, strict=True)
                ]
            except Damaged:
                continue
            yield wrap_up, terms.fold(_text(plain))
        if len(rows) < _AT_ONCE:
            return
        read += len(rows)
        where |= {"before": rows[-1][1], "before_id": rows[-1][0]}


def _text(plain: list[bytes]) -> str:
    lists = (json.loads(each) for each in plain[len(_TEXTS) :])
    items = (item["text"] for items in lists for item in items)
    return "\n".join((*(each.decode() for each in plain[: len(_TEXTS)]), *items))
