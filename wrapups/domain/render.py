"""A wrap-up as the text of an entry in the next session's prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memberintel.lib.extract import Extract
from memberintel.lib.sanitise import kept
from memberintel.lib.text import visible

# Where a prompt's copies come from, so that deleting the source removes them.
SOURCE_WRAP_UP = "wrap_up"  # the id is the wrap-up's
SOURCE_DRAFT = "wrap_up_draft"  # the id is the session's: a draft is no row

_LIMIT = 4000


@dataclass(frozen=True)
class Notes:
    """The texts of a wrap-up, whoever wrote them."""

    summary: str
    decisions: Sequence[str]
    open_items: Sequence[str]
    new_context: Sequence[str]
    next_session_note: str


def notes_of_extract(found: Extract) -> Notes:
    """The notes of a summary made without a model."""
    return Notes(
        summary=found.summary,
        decisions=[item.text for item in found.decisions],
        open_items=[item.text for item in found.open_items],
        new_context=[item.text for item in found.new_context],
        next_session_note=found.next_session_note,
    )


def entry_body(notes: Notes, *, by_person: bool) -> str:
    """The notes line by line; what is empty is left out.

    What a model wrote is sanitised once more, so that rules made since it was stored hold too. What a person
    wrote stands as written; only what nobody can see is taken out (the prompt escapes both).
    """
    parts = [_single("Summary", notes.summary, by_person)]
    parts += _listed("Decisions", notes.decisions, by_person)
    parts += _listed("Open items", notes.open_items, by_person)
    parts += _listed("New context", notes.new_context, by_person)
    parts.append(_single("Note for next time", notes.next_session_note, by_person))
    return "\n".join(part for part in parts if part)


def open_items_body(texts: Sequence[str], *, by_person: bool) -> str:
    """The open items alone, of a session whose other notes are not told any more."""
    return "\n".join(_listed("Open items", texts, by_person))


def _single(label: str, text: str, by_person: bool) -> str:
    line = _safe(text, by_person)
    return f"{label}: {line}" if line else ""


def _listed(label: str, texts: Sequence[str], by_person: bool) -> list[str]:
    lines = [line for line in (_safe(text, by_person) for text in texts) if line]
    return [f"{label}:", *(f"- {line}" for line in lines)] if lines else []


def _safe(text: str, by_person: bool) -> str:
    flat = " ".join(visible(text).split())
    return flat if by_person else kept(flat, limit=_LIMIT)
