"""Vectors for entries that have none, or another embedder's. Resumable: what is left to do is read from the rows.

Each batch is embedded outside of any transaction; a vector is written only to an entry that still says what it was
made of. So it may run twice at once, beside people who write, and be killed anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from brain import embedding
from brain.domain.memory import Vector
from brain.models import MemoryEntry
from memberintel.tenancy.context import Scope, outside_scopes
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import CannotOpen

PAGE: Final = 200
BATCH: Final = 50  # texts a call of an embedder takes
FIRST: Final = UUID(int=0)


class NoEmbedder(Exception):
    """No embedder answers; nothing more was done."""


@dataclass
class Done:
    """What a run has done: entries embedded, and entries that cannot be opened and were left as they are."""

    embedded: int = 0
    sealed: int = 0


def left(embedder: str) -> int:
    """How many entries lack a vector of this embedder; with "", how many lack any. Across tenants."""
    with outside_scopes(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT app.memories_to_embed_count(%s)", [embedder])
        return int(cursor.fetchone()[0])


def run(embedder: str, progress: Callable[[int], None] = lambda _: None) -> Done:
    """Embed every entry that lacks a vector of this embedder ("": any vector), across tenants. NoEmbedder."""
    done, past = Done(), FIRST
    while page := _page(embedder, past):
        for who, ids in page:
            before = done.embedded + done.sealed
            asyncio.run(of_customer(who, ids, embedder, done))
            progress(done.embedded + done.sealed - before)
        past = max(entry for _, ids in page for entry in ids)
    return done


async def of_customer(who: Scope, ids: list[UUID], embedder: str, done: Done) -> None:
    """Embed these entries of one customer. An entry, or a customer, whose key cannot be had is left as it is."""
    for start in range(0, len(ids), BATCH):
        texts, sealed = await unit(who, _texts, ids[start : start + BATCH], embedder)
        done.sealed += sealed
        if not texts:
            continue
        vectors = await embedding.vectors([text for _, _, text in texts], who)
        if vectors is None:
            raise NoEmbedder
        await unit(who, _write, [(entry, version) for entry, version, _ in texts], vectors)
        done.embedded += len(texts)


def missing() -> list[UUID]:
    """The entries of the current scope without any vector."""
    return list(MemoryEntry.objects.filter(embedder="").order_by("id").values_list("id", flat=True))


def _page(embedder: str, past: UUID) -> list[tuple[Scope, list[UUID]]]:
    with outside_scopes(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM app.memories_to_embed(%s, %s, %s)", [embedder, past, PAGE])
        rows = sorted(cursor.fetchall(), key=lambda row: (row[1], row[2], row[0]))
    return [
        (Scope(*owner), [row[0] for row in of])
        for owner, of in groupby(rows, key=lambda row: (row[1], row[2]))
    ]


def _texts(ids: list[UUID], embedder: str) -> tuple[list[tuple[UUID, int, str]], int]:
    """(id, version, text) of the entries that still need a vector, and how many cannot be opened."""
    found, sealed = [], 0
    rows = MemoryEntry.objects.filter(id__in=ids).order_by("id")
    for row in rows.exclude(embedder=embedder) if embedder else rows.filter(embedder=""):
        try:
            found.append((row.id, row.version, row.text))
        except CannotOpen:
            sealed += 1
    return found, sealed


def _write(entries: list[tuple[UUID, int]], vectors: list[Vector]) -> None:
    rows = MemoryEntry.objects.select_for_update().order_by("id").in_bulk([entry for entry, _ in entries])
    for (entry, version), vector in zip(entries, vectors, strict=True):
        row = rows.get(entry)
        if row is None or row.version != version:
            continue  # deleted, or says something else by now and has its own vector
        row.vector, row.embedder = tuple(vector.values), vector.embedder
        row.save(update_fields=["vector", "embedder"])
