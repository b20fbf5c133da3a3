"""Articles that staff write of a group. Nothing of the group goes into them by itself."""

from __future__ import annotations

from uuid import UUID

from django.db import connections, transaction

from brain.domain.knowledge import Written
from brain.models import KnowledgeDraft
from brain.shared import actions as shared


class Gone(Exception):
    """Too few tenants stand behind the group by now, or pooling was turned off."""


def write(group: UUID, article: Written, *, using: str) -> KnowledgeDraft:
    """Keep the article as a draft, and with the group that it was written. Raises Gone, and shared.Taken."""
    with transaction.atomic(using=using):
        draft = shared.write(article, using=using)
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT app.note_pool_draft(%s, %s)", [group, draft.pk])
            if cursor.fetchone() != (True,):
                raise Gone
    return draft
