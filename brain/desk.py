"""SOUL and BIBLE as staff open and edit them on a customer's behalf: see memberintel.privacy.openable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.http import QueryDict

from brain import actions, queries
from brain.domain.documents import Kind, Rejected, Stale
from memberintel.privacy.openable import Editor, NotSaved, Openable, of_customer

VERSIONS: Final = 20


def _document(kind: Kind) -> Openable:
    def show(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
        before = asked.get("before", "")
        found = queries.versions(
            kind, before=int(before) if before.isdecimal() and len(before) < 10 else None, limit=VERSIONS + 1
        )
        older = found[VERSIONS - 1].version if len(found) > VERSIONS else None
        return {"document": queries.document(kind), "versions": found[:VERSIONS], "older": older}

    def form(row: UUID, typed: QueryDict | None) -> dict[str, Any]:
        standing = queries.document(kind)
        if typed is None:
            return {"body": standing.text, "base_version": standing.version}
        return {"body": typed.get("body", ""), "base_version": typed.get("base_version", "")}

    def save(row: UUID, typed: QueryDict, staff: UUID, reason: str) -> str:
        given = typed.get("base_version", "")
        base = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else -1
        try:
            saved = actions.save_document(
                kind=kind, body=typed.get("body", ""), base_version=base, by="staff", reason=reason[:300]
            )
        except Stale as stale:
            fresh = {"fresh": stale.fresh, "base_version": stale.fresh.version}
            raise NotSaved(str(stale), status=409, **fresh) from None
        except Rejected as rejected:
            raise NotSaved(str(rejected), status=413) from None
        if saved.version == base:
            raise NotSaved("It already says that; there was nothing to save.")
        return f"Saved as version {saved.version}, by support. The advisor reads it from the next session on."

    return Openable(
        kind,
        kind.upper(),
        of_customer,
        "brain/desk/document.html",
        show,
        Editor("brain/desk/document_form.html", form, save),
    )


soul = _document("soul")
bible = _document("bible")
