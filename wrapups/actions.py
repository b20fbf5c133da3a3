"""What a customer may do with a wrap-up (edit it, delete it, tick off what it left open), and staff with owed work
(retry it). Short transactions, in the scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from brain import actions as brain
from memberintel.lib import analytics, clock
from memberintel.lib.ids import uuid7
from memberintel.lib.text import clean, count_words
from memberintel.tenancy.context import Scope, scope
from wrapups import jobs, marks, queries, tasks
from wrapups.domain.render import SOURCE_DRAFT, SOURCE_WRAP_UP
from wrapups.handover import actions as handover
from wrapups.models import JobState, MarkState, SessionLog
from wrapups.pooling import choices as pooling

LIMIT_WORDS = 1000  # a person may write more than a model, but it is still read into every prompt


class NotFound(Exception):
    """No such wrap-up for this customer."""


class TooLong(Exception):
    """More words than a wrap-up may have. `words` and `limit` are for the sentence shown."""

    def __init__(self, words: int, limit: int) -> None:
        self.words, self.limit = words, limit
        super().__init__(f"{words} words; the limit is {limit}")


class Empty(Exception):
    """A wrap-up without a summary says nothing; deleting it is another button."""


@dataclass(frozen=True)
class EditedItem:
    """An item as a person left it. `id` is that of the item it was before; None for one they added. Without a text
    it goes."""

    text: str
    id: str | None = None


@dataclass(frozen=True)
class Edit:
    """All texts of a wrap-up as a person left them."""

    summary: str
    decisions: Sequence[EditedItem]
    open_items: Sequence[EditedItem]
    new_context: Sequence[EditedItem]
    next_session_note: str


def edit(wrap_up: UUID, change: Edit, *, by: UUID, now: datetime | None = None) -> None:
    """Store what a person wrote, word for word: nothing of it is refused or masked, only what a database cannot
    hold is left out. It is escaped wherever it is shown.

    Raises NotFound, TooLong, Empty, or CannotOpen when what would be replaced cannot be read.
    """
    with transaction.atomic():
        row = SessionLog.objects.select_for_update().filter(id=wrap_up).first()
        if row is None:
            raise NotFound(str(wrap_up))
        row.summary = clean(change.summary).strip()
        row.next_session_note = clean(change.next_session_note).strip()
        row.decisions = _changed(row.decisions, change.decisions)
        row.open_items = _changed(row.open_items, change.open_items)
        row.open_item_ids = [item["id"] for item in row.open_items]
        row.new_context = _changed(row.new_context, change.new_context)
        row.word_count = _words(row)
        if not row.summary:
            raise Empty(str(wrap_up))
        if row.word_count > LIMIT_WORDS:
            raise TooLong(row.word_count, LIMIT_WORDS)
        row.edited_at, row.edited_by = now or clock.now(), by
        row.save(update_fields=_EDITED)
        handover.session_changed(row.session_id)
        pooling.forget(wrap_up)
        transaction.on_commit(lambda: analytics.record("wrapup_edited"))


def delete(wrap_up: UUID, *, by: UUID) -> None:
    """Delete the wrap-up and its copies in prompts. It is never written again. NotFound when there is none."""
    with transaction.atomic():
        if not SessionLog.objects.filter(id=wrap_up).exists():
            raise NotFound(str(wrap_up))
        session = remove(wrap_up, JobState.DELETED)
        handover.session_changed(session)
        transaction.on_commit(lambda: analytics.record("wrapup_deleted"))


def remove(wrap_up: UUID, state: JobState) -> UUID:
    """Delete the wrap-up for the reason its job's final `state` says, with the marks of its open items and its copies
    in prompts; the session it was of. NotFound when there is none, or it may not expire yet."""
    session = _end(wrap_up, state)
    brain.remove_parts(source_kind=SOURCE_WRAP_UP, source_id=wrap_up)
    forget_draft(session)
    return session


def forget_draft(session: UUID) -> None:
    """Take the extract that may have stood in for the session's notes out of every prompt it ever stood in."""
    brain.remove_parts(source_kind=SOURCE_DRAFT, source_id=session)


def tick(wrap_up: UUID, item: UUID, *, done: bool, now: datetime | None = None) -> None:
    """Tick an open item off, or put it back. Twice is once. NotFound when the wrap-up has no such open item."""
    with transaction.atomic():
        if not SessionLog.objects.filter(id=wrap_up, open_item_ids__contains=str(item)).exists():
            raise NotFound(str(item))
        known = next((one for one in queries.open_items_of(wrap_ups=[wrap_up]) if one.id == item), None)
        if known is None or known.status == ("resolved" if done else "open"):
            return
        marks.by_customer(
            wrap_up, item, MarkState.RESOLVED if done else MarkState.REOPENED, now or clock.now()
        )
        transaction.on_commit(lambda: analytics.record("open_item_ticked" if done else "open_item_put_back"))


def retry(job: UUID, owner: Scope) -> bool:
    """Have owed work done again, on behalf of staff; False when there is nothing to do. Enters the owner's scope."""
    with scope(owner), transaction.atomic():
        if not jobs.put_back(job, clock.now()):
            return False
        transaction.on_commit(partial(tasks.nudge, [job], owner), robust=True)
    return True


_EDITED = (
    *("summary", "decisions", "open_items", "open_item_ids", "new_context", "next_session_note"),
    *("word_count", "edited_at", "edited_by"),
)


def _end(wrap_up: UUID, state: JobState) -> UUID:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT app.end_wrap_up(%s, %s)", [wrap_up, state])
            session: UUID = cursor.fetchone()[0]
            return session
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", "") == "P0002":  # deleted by another click a moment ago
            raise NotFound(str(wrap_up)) from None
        raise


def _changed(before: Sequence[dict[str, Any]], after: Sequence[EditedItem]) -> list[dict[str, Any]]:
    """The items as edited. One that keeps its id keeps its messages; a new one rests on the person's word."""
    known = {item["id"]: item for item in before}
    kept = []
    for item in after:
        text = " ".join(clean(item.text).split())
        if text:
            old = known.pop(item.id, None) if item.id else None
            kept.append(
                {
                    "id": old["id"] if old else str(uuid7()),
                    "text": text,
                    "messages": old["messages"] if old else [],
                    "seqs": old.get("seqs", []) if old else [],
                }
            )
    return kept


def _words(row: SessionLog) -> int:
    items = (*row.decisions, *row.open_items, *row.new_context)
    return sum(map(count_words, (row.summary, row.next_session_note, *(item["text"] for item in items))))
