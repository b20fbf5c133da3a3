"""What of a customer's brain is too old to be kept: entries of MEMORY that nobody changed for so long, and what they
and the documents said before. In the current scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from brain import actions
from brain.domain.documents import KINDS
from brain.domain.memory import NotFound
from brain.memory import actions as memory
from brain.memory import queries
from brain.models import DocumentVersion, MemoryEntry, MemoryVersion

_BATCH: Final = 50


def past(before: datetime) -> dict[str, int]:
    """How much there is of it, by what it is."""
    return {
        "memories": _entries(before).count(),
        "memory_versions": _said_before(before).exclude(entry_id__in=_entries(before).values("id")).count(),
        "document_versions": _versions(before).count(),
    }


def purge(before: datetime) -> Iterator[dict[str, int]]:
    """Delete it with every copy in prompts, each entry or batch of texts in a transaction; counts after each."""
    after = UUID(int=0)
    while page := list(_entries(before).filter(id__gt=after).values_list("id", flat=True)[:_BATCH]):
        for entry in page:
            with suppress(NotFound):  # the customer changed or deleted it a moment ago
                memory.delete(entry, older_than=before)
                yield {"memories": 1}
        after = page[-1]
    while found := _old_texts(before):
        yield {"memory_versions": found}
    while found := _old_versions(before):
        yield {"document_versions": found}


def _entries(before: datetime) -> QuerySet[MemoryEntry]:
    return MemoryEntry.objects.filter(updated_at__lt=before).order_by("id")


def _said_before(before: datetime) -> QuerySet[MemoryVersion]:
    return MemoryVersion.objects.filter(replaced_at__lt=before).order_by("id")


def _versions(before: datetime) -> QuerySet[DocumentVersion]:
    """Those whose place another took before then; see `app.expire_document_versions`, which decides."""
    newer = DocumentVersion.objects.filter(kind=OuterRef("kind"), version__gt=OuterRef("version"))
    by_advisor = Q(author="advisor")
    return DocumentVersion.objects.filter(
        Exists(newer.filter(at__lt=before)), by_advisor | Exists(newer.exclude(by_advisor))
    )


def _old_texts(before: datetime) -> int:
    """What entries said before, a batch of it; how many. A text that stands again brings its copies back with it."""
    with transaction.atomic():
        rows = list(_said_before(before)[:_BATCH])
        MemoryVersion.objects.filter(id__in=[row.id for row in rows]).delete()
        for row in rows:
            actions.remove_parts(
                source_kind=queries.SOURCE, source_id=row.entry_id, made_before=row.replaced_at
            )
    return len(rows)


def _old_versions(before: datetime) -> int:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM app.expire_document_versions(%s, %s)", [before, _BATCH])
            ids = [row[0] for row in cursor.fetchall()]
        for kind in KINDS:
            for version in ids:
                actions.remove_parts(source_kind=kind, source_id=version)
    return len(ids)
