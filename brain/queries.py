"""Reading a customer's documents and the parts of their prompts, in the current scope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast
from uuid import UUID

from brain.domain.documents import KINDS, Author, DocumentText, Kind, Origin, Version
from brain.domain.prompt import Part
from brain.models import Document, DocumentVersion, PromptPart
from memberintel.vault.errors import Damaged

_BIGGEST = 2**31 - 1


def document(kind: Kind) -> DocumentText:
    """The document as it stands; version 0 with no text when nobody has written it. CannotOpen if damaged."""
    row = Document.objects.filter(kind=kind).first()
    return as_text(row) if row else DocumentText(kind)


def documents() -> list[DocumentText]:
    """Both documents, SOUL first. CannotOpen if one is damaged."""
    return [document(kind) for kind in KINDS]


def versions(kind: Kind, *, before: int | None = None, limit: int = 20) -> list[Version]:
    """What the document once said, newest first; `before` is a version number to page from."""
    rows = DocumentVersion.objects.filter(kind=kind).order_by("-version")
    if before is not None:
        rows = rows.filter(version__lt=before)
    return [_version(row) for row in rows[:limit]]


def version(kind: Kind, number: int) -> Version | None:
    """What the document said in that version, or None. A version that is damaged is not `readable`."""
    if not 0 < number <= _BIGGEST:
        return None
    row = DocumentVersion.objects.filter(kind=kind, version=number).first()
    return _version(row) if row else None


def newest_version(kind: Kind) -> int:
    """The number of the version that stands; 0 when nobody has written the document."""
    return Document.objects.filter(kind=kind).values_list("version", flat=True).first() or 0


def version_id(kind: Kind, number: int) -> UUID | None:
    """The id that prompt parts of that version name as their source; None when there is no such version."""
    found = DocumentVersion.objects.filter(kind=kind, version=number)
    return found.values_list("id", flat=True).first()


def approved(kind: Kind, through: int) -> Version | None:
    """The newest version up to that one which a person saved; None when all are the advisor's."""
    rows = DocumentVersion.objects.filter(kind=kind, version__lte=through).exclude(author="advisor")
    row = rows.order_by("-version").first()
    return _version(row) if row else None


def _version(row: DocumentVersion) -> Version:
    try:
        said, reason, readable = row.text or "", row.reason or "", True
    except Damaged:
        said, reason, readable = "", "", False
    return Version(
        id=row.id,
        kind=cast(Kind, row.kind),
        version=row.version,
        text=said,
        author=cast(Author, row.author),
        reason=reason,
        at=row.at,
        origin=Origin(row.session_id, row.message_seq) if row.session_id and row.message_seq else None,
        restores=row.restores,
        changes=tuple(row.changes),
        redacted_on=row.redacted_on,
        readable=readable,
    )


def prompt_parts(sections: Iterable[tuple[str, str]]) -> list[Part]:
    """The stored parts for (name, digest) pairs, in the same order, for `brain.domain.prompt.assemble`.

    A part whose source was removed has no text. KeyError for a digest that was never stored; CannotOpen for a
    part that does not open.
    """
    wanted = list(sections)
    rows = {row.digest: row for row in PromptPart.objects.filter(digest__in={digest for _, digest in wanted})}
    return [Part(name, rows[digest].text, rows[digest].removed_on) for name, digest in wanted]


def sources(digests: Iterable[str]) -> frozenset[UUID]:
    """What the parts with these digests were made of, by the ids of their sources."""
    rows = PromptPart.objects.filter(digest__in=set(digests), source_id__isnull=False)
    return frozenset(source for source in rows.values_list("source_id", flat=True) if source)


def as_text(row: Document) -> DocumentText:
    """The row as a value, opened."""
    return DocumentText(
        cast(Kind, row.kind), row.version, row.text, row.updated_at, cast(Author, row.updated_by)
    )
