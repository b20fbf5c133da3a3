"""What may be done to a customer's documents and to the parts of their prompts, in the current scope."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from brain import queries, sources
from brain.domain.documents import (
    REASON_CHARACTERS,
    Author,
    DocumentText,
    Kind,
    NoVersion,
    Origin,
    Redacted,
    Stale,
    Standing,
    TooLong,
)
from brain.domain.prompt import RenderedPart
from brain.models import Document, DocumentVersion, PromptPart
from brain.signals import parts_removed
from memberintel.lib import clock, text, tokens
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.tenancy.locks import one_at_a_time
from memberintel.vault import keyring
from memberintel.vault.errors import Damaged


def save_document(
    *,
    kind: Kind,
    body: str,
    base_version: int,
    by: Author,
    reason: str,
    origin: Origin | None = None,
    changes: Sequence[str] = (),
    restores: int | None = None,
) -> DocumentText:
    """Write a new version of SOUL or BIBLE, made on `base_version` (0: there was none); returns what stands.

    Saving what already stands makes no version. Stale when another version is the newest, TooLong over the
    cap, CannotOpen when the text that would be replaced cannot be read: then nothing is written. The advisor
    names as `origin` the message it answers, and as `changes` what was done to its words before they were kept.
    """
    body = text.clean(body).strip()
    limit = settings.DOCUMENT_LIMIT_TOKENS[kind]
    if (size := tokens.count(body)) > limit:
        raise TooLong(kind, size, limit)
    made = DocumentVersion(
        kind=kind,
        version=base_version + 1,
        text=body,
        reason=text.clean(reason).strip()[:REASON_CHARACTERS],
        author=by,
        at=clock.now(),
        session_id=origin.session if origin else None,
        message_seq=origin.message_seq if origin else None,
        restores=restores,
        changes=list(changes),
    )
    try:
        with transaction.atomic():
            return _save(made)
    except IntegrityError:  # two first versions at once: the other one won
        raise Stale(queries.document(kind)) from None


def _save(made: DocumentVersion) -> DocumentText:
    row = _locked(cast(Kind, made.kind))
    standing = queries.as_text(row) if row else DocumentText(cast(Kind, made.kind))
    if standing.version != made.version - 1:
        raise Stale(standing)
    if standing.text == made.text:
        return standing
    row = row or Document(kind=made.kind)
    row.version, row.text = made.version, made.text or ""
    row.updated_by, row.updated_at = made.author, made.at
    row.save()
    made.save(force_insert=True)
    return queries.as_text(row)


def restore(*, kind: Kind, version: int, base_version: int, by: Author, reason: str = "") -> DocumentText:
    """Save what an earlier version said as a new one, made on `base_version`; returns what stands.

    NoVersion, Redacted when its text was taken out, and as `save_document`.
    """
    earlier = queries.version(kind, version)
    if earlier is None:
        raise NoVersion(f"{kind} {version}")
    if earlier.redacted_on:
        raise Redacted(version, earlier.redacted_on)
    if not earlier.readable:
        raise Damaged(f"{kind} {version}")
    return save_document(
        kind=kind, body=earlier.text, base_version=base_version, by=by, reason=reason, restores=version
    )


def redact(*, kind: Kind, version: int) -> None:
    """Take text and reason out of a version, and its text out of every prompt it ever stood in. Its row stays.

    NoVersion, Redacted when that was done before, Standing while it is what the document says.
    """
    with transaction.atomic():
        row = _locked(kind)
        kept = DocumentVersion.objects.filter(kind=kind, version=version).first()
        if row is None or kept is None:
            raise NoVersion(f"{kind} {version}")
        if kept.redacted_on:
            raise Redacted(version, kept.redacted_on)
        if row.version == version:
            raise Standing(kind, version)
        with connection.cursor() as cursor:
            cursor.execute("SELECT app.redact_document_version(%s, %s)", [kind, version])
        remove_parts(source_kind=kind, source_id=kept.id)


def _locked(kind: Kind) -> Document | None:
    return Document.objects.select_for_update().filter(kind=kind).first()


def store_parts(parts: Iterable[RenderedPart]) -> list[str]:
    """Keep the texts a prompt is made of; returns their digests in the same order.

    The same text of the same source is kept once, however many sessions it stood in. One that was removed and
    is said again by its source (a sentence typed anew) has its text again. A source that was deleted since its text
    was read is kept as removed, without the text. UnknownSource for a kind that PROMPT_SOURCES does not name.
    """
    wanted = list(parts)
    key = keyring.customer_key()
    digests = [_digest(key, part) for part in wanted]
    with transaction.atomic():
        _one_at_a_time()
        lost = sources.gone((part.source_kind, part.source_id) for part in wanted)
        known = {row.digest: row for row in PromptPart.objects.filter(digest__in=digests)}
        for digest, part in zip(digests, wanted, strict=True):
            row, kept = known.get(digest), (part.source_kind, part.source_id) not in lost
            if row is None:
                known[digest] = _insert(digest, part, kept)
            elif not kept:
                _forget([row.id])
            elif row.removed_on is not None:
                row.text, row.removed_on = part.text, None
                row.save(update_fields=["text", "removed_on"])
    return digests


def remove_parts(*, source_kind: str, source_id: UUID, made_before: datetime | None = None) -> int:
    """Take the text of a deleted source out of every prompt it ever stood in; returns how many parts. With
    `made_before` only what it said until then.

    Call it in the transaction that deletes the source: a prompt that is being made meanwhile then either has its
    parts removed here, or does not get them. Says `parts_removed` when there were any.
    """
    with transaction.atomic():
        _one_at_a_time()
        found = PromptPart.objects.filter(source_kind=source_kind, source_id=source_id)
        if made_before is not None:
            found = found.filter(created_at__lt=made_before)
        removed = _forget(found.values_list("id", flat=True))
        if removed:
            parts_removed.send(sender=None)
    return removed


def _forget(parts: Iterable[UUID]) -> int:
    rows = PromptPart.objects.filter(id__in=list(parts), removed_on__isnull=True)
    return rows.update(text=None, removed_on=clock.now().date())


def hold_parts(customers: Iterable[UUID]) -> None:
    """In a transaction of the tenant that removes parts of several customers: what `remove_parts` does for one."""
    for customer in sorted(customers):
        _one_at_a_time(customer)


def _one_at_a_time(customer: UUID | None = None) -> None:
    """Let only one transaction at a time keep or remove parts of this customer.

    Else a source that is deleted between the look whether it stands and the commit of its copy would leave that
    copy behind: neither transaction sees what the other has not committed.
    """
    one_at_a_time(f"prompt parts of {current_tenant_id()} {customer or current_customer_id()}")


def _insert(digest: str, part: RenderedPart, kept: bool) -> PromptPart:
    now = clock.now()
    return PromptPart.objects.create(
        digest=digest,
        source_kind=part.source_kind,
        source_id=part.source_id,
        text=part.text if kept else None,
        created_at=now,
        removed_on=None if kept else now.date(),
    )


def digest_anew(row: PromptPart) -> str:
    """A digest for a part that was brought in from another account, where its own was keyed for that customer."""
    derived = hmac.digest(keyring.customer_key(), b"memberintel prompt parts brought in", hashlib.sha256)
    return hmac.digest(derived, row.digest.encode(), hashlib.sha256).hex()


def _digest(key: bytes, part: RenderedPart) -> str:
    derived = hmac.digest(key, b"memberintel prompt parts", hashlib.sha256)
    said = "\0".join((part.name, part.source_kind, str(part.source_id), part.text))
    return hmac.digest(derived, said.encode(), hashlib.sha256).hex()
