"""SOUL, BIBLE, MEMORY and HEARTBEAT as staff open and edit them on a customer's behalf: see
memberintel.privacy.openable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.http import QueryDict

from brain import actions, queries
from brain.domain.documents import Kind, Rejected, Stale, version_in
from brain.domain.heartbeat import csv_file
from brain.domain.memory import Changed, Memory, NotFound, NotKept
from brain.domain.prompt import day_in_words
from brain.heartbeat import actions as numbers
from brain.heartbeat import queries as sites
from brain.memory import actions as remembering
from brain.memory import queries as memories
from brain.memory.actions import New
from brain.models import MemoryEntry
from memberintel.privacy.openable import Editor, Gone, NotSaved, Openable, of_customer, of_row

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
        base = version_in(typed.get("base_version", ""))
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


# --- MEMORY ----------------------------------------------------------------------------------------------


def _all(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    return {"memories": memories.memories(), "cap": memories.cap()}


def _one(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    return {"memory": _memory(row), "before": memories.before(row)}


def _memory(row: UUID) -> Memory:
    found = memories.memory(row)
    if found is None:
        raise Gone
    return found


def _memory_form(row: UUID, typed: QueryDict | None) -> dict[str, Any]:
    standing = _memory(row)
    if typed is None:
        return {"text": standing.text, "base_version": standing.version}
    return {"text": typed.get("text", ""), "base_version": typed.get("base_version", "")}


def _save_memory(row: UUID, typed: QueryDict, staff: UUID, reason: str) -> str:
    """Write the entry anew. It is found by its words until the clock has made its vector."""
    base = version_in(typed.get("base_version", ""))
    try:
        saved = remembering.change(row, New(typed.get("text", ""), reason, "staff"), base_version=base)
    except NotFound:
        raise Gone from None
    except Changed as changed:
        raise NotSaved(
            str(changed), status=409, fresh=changed.fresh, base_version=changed.fresh.version
        ) from None
    except NotKept as refused:
        raise NotSaved(str(refused)) from None
    return f"Saved as version {saved.version}, by support. The advisor goes by it from the next message on."


memory_list = Openable("memories", "MEMORY", of_customer, "brain/desk/memories.html", _all)
memory = Openable(
    "memory",
    "An entry of MEMORY",
    of_row(MemoryEntry),
    "brain/desk/memory.html",
    _one,
    Editor("brain/desk/memory_form.html", _memory_form, _save_memory),
)


# --- HEARTBEAT -------------------------------------------------------------------------------------------


def _sites(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    return {"sites": [(site, sites.told(site.id)) for site in sites.sites()]}


def _file_form(row: UUID, typed: QueryDict | None) -> dict[str, Any]:
    chosen = typed.get("site", "") if typed is not None else ""
    return {
        "sites": [(str(site.id), site.name) for site in sites.sites()],
        "chosen": chosen,
        "columns": ", ".join(csv_file.ABOUT),
        "sample": csv_file.SAMPLE,
    }


def _keep_file(row: UUID, typed: QueryDict, staff: UUID, reason: str) -> str:
    """Keep the numbers of a file that a customer has sent us for one of their sites; all or none."""
    try:
        data = typed.get("file", "").encode("utf-8", "surrogateescape")
        done = numbers.upload(UUID(typed.get("site", "")), data)
    except (ValueError, sites.NotFound):
        raise NotSaved("Choose one of their sites.") from None
    except csv_file.BadFile as refused:
        told: dict[str, Any] = {"faults": refused.faults, "more": refused.more}
        raise NotSaved("Nothing was kept. Mend this in the file and send it again.", **told) from None
    return f"{done.days} days kept, from {day_in_words(done.first)} to {day_in_words(done.last)}."


heartbeat = Openable(
    "heartbeat",
    "HEARTBEAT",
    of_customer,
    "brain/desk/heartbeat.html",
    _sites,
    Editor("brain/desk/heartbeat_form.html", _file_form, _keep_file, file="file"),
)
