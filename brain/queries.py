"""Reading a customer's documents and the parts of their prompts, in the current scope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast
from uuid import UUID

from brain.domain.documents import KINDS, Author, DocumentText, Kind, Version
from brain.domain.prompt import Part
from brain.models import Document, DocumentVersion, PromptPart


def document(kind: Kind) -> DocumentText:
    """The document as it stands; version 0 with no text when nobody has written it. CannotOpen if damaged."""
    row = Document.objects.filter(kind=kind).first()
    return as_text(row) if row else DocumentText(kind)


def documents() -> list[DocumentText]:
    """Both documents, SOUL first. CannotOpen if one is damaged."""
    return [document(kind) for kind in KINDS]


def document_id(kind: Kind) -> UUID | None:
    """The id prompt parts of this document name as their source; None when nobody has written it."""
    return Document.objects.filter(kind=kind).values_list("id", flat=True).first()


def versions(kind: Kind, *, before: int | None = None, limit: int = 20) -> list[Version]:
    """What the document once said, newest first; `before` is a version number to page from."""
    rows = DocumentVersion.objects.filter(kind=kind).order_by("-version")
    if before is not None:
        rows = rows.filter(version__lt=before)
    return [
        Version(kind, row.version, row.text, cast(Author, row.author), row.reason, row.at)
        for row in rows[:limit]
    ]


def prompt_parts(sections: Iterable[tuple[str, str]]) -> list[Part]:
    """The stored parts for (name, digest) pairs, in the same order, for `brain.domain.prompt.assemble`.

    A part whose source was removed has no text. KeyError for a digest that was never stored; CannotOpen for a
    part that does not open.
    """
    wanted = list(sections)
    rows = {row.digest: row for row in PromptPart.objects.filter(digest__in={digest for _, digest in wanted})}
    return [Part(name, rows[digest].text, rows[digest].removed_on) for name, digest in wanted]


def as_text(row: Document) -> DocumentText:
    """The row as a value, opened."""
    return DocumentText(
        cast(Kind, row.kind), row.version, row.text, row.updated_at, cast(Author, row.updated_by)
    )
