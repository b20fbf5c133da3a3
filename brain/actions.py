"""What may be done to a customer's documents and to the parts of their prompts, in the current scope."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from brain import queries
from brain.domain.documents import Author, DocumentText, Kind, Stale, TooLong
from brain.domain.prompt import RenderedPart
from brain.models import Document, DocumentVersion, PromptPart
from memberintel.lib import clock, text, tokens
from memberintel.vault import keyring


def save_document(*, kind: Kind, body: str, base_version: int, by: Author, reason: str) -> DocumentText:
    """Write a new version of SOUL or BIBLE, made on `base_version` (0: there was none); returns what stands.

    Saving what already stands makes no version. Stale when another version is the newest, TooLong over the
    cap, CannotOpen when the text that would be replaced cannot be read: then nothing is written.
    """
    body = text.clean(body.replace("\r\n", "\n")).strip()
    limit = settings.DOCUMENT_LIMIT_TOKENS[kind]
    if (size := tokens.count(body)) > limit:
        raise TooLong(kind, size, limit)
    try:
        with transaction.atomic():
            return _save(kind, body, base_version, by, text.clean(reason).strip())
    except IntegrityError:  # two first versions at once: the other one won
        raise Stale(queries.document(kind)) from None


def _save(kind: Kind, body: str, base_version: int, by: Author, reason: str) -> DocumentText:
    row = Document.objects.select_for_update().filter(kind=kind).first()
    standing = queries.as_text(row) if row else DocumentText(kind)
    if standing.version != base_version:
        raise Stale(standing)
    if standing.text == body:
        return standing
    row = row or Document(kind=kind)
    row.version, row.text, row.updated_by, row.updated_at = base_version + 1, body, by, clock.now()
    row.save()
    DocumentVersion.objects.create(
        kind=kind, version=row.version, text=body, reason=reason, author=by, at=row.updated_at
    )
    return queries.as_text(row)


def store_parts(parts: Iterable[RenderedPart]) -> list[str]:
    """Keep the texts a prompt is made of; returns their digests in the same order.

    The same text of the same source is kept once, however many sessions it stood in. One that was removed and
    is said again by its source (a sentence typed anew) has its text again.
    """
    wanted = list(parts)
    key = keyring.customer_key()
    digests = [_digest(key, part) for part in wanted]
    with transaction.atomic():
        known = {row.digest: row for row in PromptPart.objects.filter(digest__in=digests)}
        for digest, part in zip(digests, wanted, strict=True):
            row = known.get(digest)
            if row is None:
                known[digest] = _insert(digest, part)
            elif row.removed_on is not None:
                row.text, row.removed_on = part.text, None
                row.save(update_fields=["text", "removed_on"])
    return digests


def remove_parts(*, source_kind: str, source_id: UUID) -> int:
    """Take the text of a deleted source out of every prompt it ever stood in; returns how many parts."""
    return PromptPart.objects.filter(
        source_kind=source_kind, source_id=source_id, removed_on__isnull=True
    ).update(text=None, removed_on=clock.now().date())


def _insert(digest: str, part: RenderedPart) -> PromptPart:
    row = PromptPart(
        digest=digest,
        source_kind=part.source_kind,
        source_id=part.source_id,
        text=part.text,
        created_at=clock.now(),
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:  # another turn of this customer stored the very text a moment ago
        return PromptPart.objects.get(digest=digest)
    return row


def _digest(key: bytes, part: RenderedPart) -> str:
    derived = hmac.digest(key, b"memberintel prompt parts", hashlib.sha256)
    said = "\0".join((part.name, part.source_kind, str(part.source_id), part.text))
    return hmac.digest(derived, said.encode(), hashlib.sha256).hex()
