"""Marks on open items: what became of them after their wrap-up was written. Only ever added, in the scope."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from memberintel.tenancy.rows import insert
from wrapups.domain.open_items import OpenItem
from wrapups.models import ItemMark, MarkState


def by_session(item: OpenItem, state: MarkState, session: UUID, seq: int | None, now: datetime) -> None:
    """A session settled the item, or came back to it. Nothing, when its wrap-up was deleted meanwhile."""
    mark = ItemMark(
        wrap_up_id=item.wrap_up, item_id=item.id, state=state, session_id=session, seq=seq, at=now
    )
    with suppress(IntegrityError), transaction.atomic():
        insert(mark)


def asked(items: Iterable[OpenItem], session: UUID, now: datetime) -> None:
    """The session's advisor asks about these; from the next session on they are parked."""
    for item in items:
        by_session(item, MarkState.ASKED, session, None, now)


def by_customer(wrap_up: UUID, item: UUID, state: MarkState, now: datetime) -> None:
    """The customer ticked the item off, or put it back."""
    ItemMark.objects.create(wrap_up_id=wrap_up, item_id=item, state=state, at=now)
