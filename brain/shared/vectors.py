"""Vectors of published articles. Embedded outside of any transaction; may run twice at once and be killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import numpy as np
from django.db.models import QuerySet

from brain import embedding
from brain.memory.reembed import NoEmbedder
from brain.models import Knowledge
from brain.shared import queries
from memberintel.lib import clock
from memberintel.tenancy.context import SYSTEM, outside_scopes

BATCH: Final = 50


def left(embedder: str) -> int:
    """How many published articles lack a vector of this embedder; with "", how many lack any."""
    with outside_scopes():
        return _lacking(embedder).count()


def run(embedder: str, progress: Callable[[int], None] = lambda _: None) -> int:
    """Embed every published article that lacks a vector of this embedder ("": any vector); how many. NoEmbedder."""
    done, past = 0, None
    with outside_scopes():
        while rows := list((_lacking(embedder).filter(id__gt=past) if past else _lacking(embedder))[:BATCH]):
            vectors = asyncio.run(embedding.vectors([queries.said(row) for row in rows], SYSTEM))
            if vectors is None:
                raise NoEmbedder
            for row, vector in zip(rows, vectors, strict=True):
                # Only where the article still says what the vector was made of.
                Knowledge.objects.filter(id=row.id, title=row.title, text=row.text).update(
                    vector=np.asarray(vector.values, "<f4").tobytes(),
                    embedder=vector.embedder,
                    changed_at=clock.now(),
                )
            done, past = done + len(rows), rows[-1].id
            progress(len(rows))
    return done


def _lacking(embedder: str) -> QuerySet[Knowledge]:
    rows = Knowledge.objects.order_by("id")
    return rows.exclude(embedder=embedder) if embedder else rows.filter(embedder="")
