"""The tool with which the advisor keeps the customer's documents up to date."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from brain import actions, queries
from brain.domain import edits
from brain.domain.documents import KINDS, REASON_CHARACTERS, DocumentText, Kind, Origin, Stale, TooLong
from brain.domain.tools import AdvisorTool, ToolContext, ToolError
from brain.memory.actions import remember_from_tool
from memberintel.lib.sanitise import Refused, sanitise
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit

FRESH_CHARACTERS = 40_000
MOST_EDITS = 20
MEMORY = "memory"

DESCRIPTION = """\
Keep what you know of the owner up to date: SOUL (who they are, how they want to be spoken to), BIBLE (the facts of \
their business) or MEMORY (single insights that belong in neither, one at a time). Use it when the owner tells you \
something lasting: a price, a number, a decision, a preference; not for passing remarks, and not for what a section \
already says. Change the smallest stretch that makes it true. The owner sees every version with your reason and can \
undo it. For memory write one or two sentences in `append` and leave `edits` and `base_version` alone; when you are \
told that something like it is kept, or that all places are taken, call again with the id of the entry to replace, or \
keep both.
"""


class EditIn(BaseModel):
    """One stretch of the document and what shall stand in its place."""

    model_config = ConfigDict(extra="forbid")
    find: str = Field(
        description="A stretch of the document's text, exactly as it stands; it must stand there once."
    )
    replace: str = Field(default="", description="What shall stand there instead; empty to take it out.")


class UpdateBrain(BaseModel):
    """A change of one document."""

    model_config = ConfigDict(extra="forbid")
    target: str = Field(description="Which document.", json_schema_extra={"enum": [*KINDS, MEMORY]})
    base_version: int = Field(
        default=0,
        description="The version you read: it stands in the section's label, or in the result of your last"
        " change. 0 when there is no such section yet.",
    )
    edits: list[EditIn] = Field(default_factory=list, description="Changes, made one after the other.")
    append: str = Field(default="", description="Text to add as a new line at the end.")
    replace_entry: str | None = Field(
        default=None, description="For memory: the id of the entry this takes the place of."
    )
    keep_both: bool = Field(default=False, description="For memory: keep it beside similar entries.")
    reason: str = Field(description="Why, in one sentence, for the owner.")


async def _run(context: ToolContext, asked: UpdateBrain) -> str:
    if asked.target == MEMORY:
        return await _memory(context, asked)
    if asked.target not in KINDS:
        raise ToolError(
            "wrong_target",
            f"There is no {asked.target[:40]!r} to write to. You may write to: {', '.join((*KINDS, MEMORY))}."
            " HEARTBEAT is made from the site's numbers, and notes of conversations are written when one ends; neither"
            " is edited.",
        )
    if context.off_record:
        raise ToolError("off_record", "This conversation is off the record: nothing is kept of it.")
    return await _document(asked.target, context, asked)


async def _memory(context: ToolContext, asked: UpdateBrain) -> str:
    if asked.edits:
        raise ToolError(
            "wrong_edits", "An entry of memory is written whole, in `append`; nothing was changed."
        )
    return await remember_from_tool(
        context, asked.append, asked.reason, replace=asked.replace_entry, keep_both=asked.keep_both
    )


async def _document(kind: Kind, context: ToolContext, asked: UpdateBrain) -> str:
    scope = Scope(context.tenant_id, context.customer_id)
    standing = await unit(scope, queries.document, kind)
    if standing.version != asked.base_version:
        raise _stale(standing)
    made, reason = await asyncio.to_thread(_made, standing, asked)
    try:
        saved = await unit(
            scope,
            actions.save_document,
            kind=kind,
            body=made.text,
            base_version=standing.version,
            by="advisor",
            reason=reason,
            origin=Origin(context.session_id, context.message_seq),
            changes=made.changes,
        )
    except Stale as stale:
        raise _stale(stale.fresh) from None
    except TooLong as long:
        raise ToolError(
            "too_long",
            f"{kind.upper()} would be {long.tokens:,} tokens long; at most {long.limit:,} fit. Nothing was changed:"
            " bring less, or take out what no longer holds.",
        ) from None
    return _told(kind, standing, saved, reason, made.changes)


def _made(standing: DocumentText, asked: UpdateBrain) -> tuple[edits.Edited, str]:
    """The document after the edits, and the reason, both as they may be kept; ToolError if there is nothing."""
    if len(asked.edits) > MOST_EDITS:
        raise ToolError("too_many", f"At most {MOST_EDITS} edits at once; nothing was changed.")
    if not asked.reason.strip():
        raise ToolError("no_reason", "Say in one sentence why, for the owner; nothing was changed.")
    if not asked.edits and not asked.append.strip():
        raise ToolError("empty", "There is no edit and nothing to append; nothing was changed.")
    try:
        reason = sanitise(" ".join(asked.reason.split()), limit=REASON_CHARACTERS).text
        return edits.edited(standing.text, _edits(asked.edits), asked.append), reason
    except edits.Unmatched as unmatched:
        raise _unmatched(standing, unmatched) from None
    except edits.TooMuch:
        raise ToolError(
            "too_long",
            f"An edit may bring {edits.LONGEST:,} characters at most, and no document holds as many; nothing was"
            " changed.",
        ) from None
    except Refused as refused:
        raise ToolError(
            "refused",
            f"This may not be kept, because {refused.reason}. Nothing was changed: write what is true of the owner or"
            " the business, as a plain statement.",
        ) from None


def _edits(asked: Sequence[EditIn]) -> list[edits.Edit]:
    return [edits.Edit(edit.find, edit.replace) for edit in asked]


def _stale(fresh: DocumentText) -> ToolError:
    return ToolError(
        "stale",
        f"{fresh.kind.upper()} has changed: version {fresh.version} stands now. Nothing was changed. Make your edits on"
        f" this text, with base_version {fresh.version}: {_as_json(fresh)}",
    )


def _unmatched(standing: DocumentText, unmatched: edits.Unmatched) -> ToolError:
    found = "does not stand in" if unmatched.times == 0 else f"stands {unmatched.times} times in"
    return ToolError(
        "unmatched",
        f"The find of edit {unmatched.edit} {found} {standing.kind.upper()}, version {standing.version}, after the"
        " edits before it; it must stand there exactly once. Nothing was changed. Make your edits on this text:"
        f" {_as_json(standing)}",
    )


def _as_json(document: DocumentText) -> str:
    """Version and text, the latter up to FRESH_CHARACTERS."""
    shown = document.text[:FRESH_CHARACTERS]
    told: dict[str, Any] = {"version": document.version, "text": shown}
    if len(shown) < len(document.text):
        told["cut_at"] = FRESH_CHARACTERS
    return json.dumps(told, ensure_ascii=False)


def _told(kind: Kind, before: DocumentText, saved: DocumentText, reason: str, changes: Sequence[str]) -> str:
    if saved.version == before.version:
        return json.dumps({"unchanged": f"{kind.upper()} said that already.", "version": saved.version})
    told: dict[str, Any] = {"changed": {"document": kind.upper(), "version": saved.version, "change": reason}}
    if changes:
        told["made_fit"] = list(changes)
    return json.dumps(told, ensure_ascii=False)


update_customer_brain = AdvisorTool(
    name="update_customer_brain",
    description=DESCRIPTION,
    arguments=UpdateBrain,
    run=_run,
    writes=True,
)
