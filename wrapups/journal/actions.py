"""What a customer may do with an entry of their journal. Short transactions, in the scope."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from memberintel.lib import analytics, clock
from memberintel.lib.text import clean, count_words
from wrapups.handover import actions as handover
from wrapups.models import JournalEntry

LIMIT_WORDS = 2_000


class NotFound(Exception):
    """No such entry for this customer."""


class TooLong(Exception):
    """More words than an entry may have."""

    def __init__(self, words: int) -> None:
        self.words, self.limit = words, LIMIT_WORDS
        super().__init__(f"{words} words; the limit is {LIMIT_WORDS}")


def edit(session: UUID, text: str, *, now: datetime | None = None) -> None:
    """Store what a person wrote about a session, word for word; it is never written over by a model again.

    An empty text is kept as such: the customer wants nothing to stand there. Raises NotFound, TooLong.
    """
    text = clean(text.replace("\r\n", "\n")).strip()
    if (words := count_words(text)) > LIMIT_WORDS:
        raise TooLong(words)
    with transaction.atomic():
        row = JournalEntry.objects.select_for_update().filter(session_id=session).first()
        if row is None:
            raise NotFound(str(session))
        row.blob, row.edited_at = text, now or clock.now()
        row.save(update_fields=["blob", "edited_at"])
        handover.session_changed(session)
        transaction.on_commit(lambda: analytics.record("journal_edited"))
