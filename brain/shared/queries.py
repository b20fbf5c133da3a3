"""Reading published knowledge: the same for everybody, with or without a scope."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from threading import Lock
from uuid import UUID

import numpy as np
from django.db.models import Count, Max

from brain.domain.knowledge import Article
from brain.domain.memory import Thing, Vector
from brain.models import Knowledge

type _Stamp = tuple[int, datetime | None]
_held: tuple[_Stamp, tuple[Thing[Article], ...]] = ((0, None), ())
_lock = Lock()


def articles() -> list[Article]:
    """Every published article, by topic and title."""
    return [_article(row) for row in Knowledge.objects.defer("vector").order_by("topic", "title")]


def article(*, slug: str | None = None, id: UUID | None = None) -> Article | None:
    """The published article of that slug, or that id; None when there is none."""
    rows = Knowledge.objects.defer("vector")
    row = rows.filter(slug=slug).first() if id is None else rows.filter(id=id).first()
    return _article(row) if row else None


def things() -> Sequence[Thing[Article]]:
    """Every published article with its vector. Kept in the process, and read again when one has changed."""
    global _held
    told = Knowledge.objects.aggregate(rows=Count("id"), changed=Max("changed_at"))
    stamp = (told["rows"], told["changed"])
    with _lock:
        if _held[0] == stamp:
            return _held[1]
    found = tuple(_thing(row) for row in Knowledge.objects.order_by("topic", "title"))
    with _lock:
        _held = (stamp, found)
    return found


def said(row: Knowledge) -> str:
    """What of an article is embedded."""
    return f"{row.title}. {row.text}"


def _article(row: Knowledge) -> Article:
    return Article(row.id, row.slug, row.title, row.topic, row.text, row.published_at)


def _thing(row: Knowledge) -> Thing[Article]:
    vector = Vector(np.frombuffer(row.vector, "<f4"), row.embedder) if row.vector is not None else None
    return Thing(_article(row), said(row), vector)
