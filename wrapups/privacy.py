"""Wrap-ups and journal when a customer takes them along, and when they are destroyed. In the customer's scope."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from memberintel.privacy.archive import Archive, of_model
from memberintel.privacy.rows import NOT_READABLE_TEXT
from memberintel.vault.errors import Damaged
from wrapups import actions
from wrapups.handover import actions as handover
from wrapups.models import ClosingJob, JobState, JournalEntry, SessionLog

HIDDEN: Final = {"closing_jobs": ("lease_until",)}  # of running processes


def export(archive: Archive) -> None:
    """Every wrap-up and every entry of the journal, oldest first."""
    archive.text("wrap-ups.md", _wrap_ups())
    archive.text("journal.md", _journal())


def _wrap_ups() -> Iterator[str]:
    for row in of_model(SessionLog.objects.all):
        yield f"# {row.session_started_at:%Y-%m-%d %H:%M} UTC (conversation {row.session_id})\n\n{_body(row)}\n\n"


_FELT: Final = ("mood", "energy", "reason")


def _journal() -> Iterator[str]:
    for row in of_model(JournalEntry.objects.all):
        try:
            felt = row.feeling or {}
            said = [row.blob, *(f"{name.title()}: {felt[name]}" for name in _FELT if felt.get(name))]
            said.append(f"Themes: {', '.join(felt['themes'])}" if felt.get("themes") else None)
        except Damaged:
            said = [NOT_READABLE_TEXT]
        entry = "\n\n".join(part for part in said if part)
        yield f"# {row.session_started_at:%Y-%m-%d %H:%M} UTC\n\n{entry}\n\n"


def _body(row: SessionLog) -> str:
    try:
        lists = [
            ("Decisions", row.decisions),
            ("Open items", row.open_items),
            ("New context", row.new_context),
        ]
        parts = [row.summary, *(_listed(label, items) for label, items in lists)]
        return "\n\n".join(part for part in (*parts, f"Next time: {row.next_session_note}") if part)
    except Damaged:
        return NOT_READABLE_TEXT


def _listed(label: str, items: list[dict[str, Any]]) -> str:
    return f"{label}:\n\n" + "\n".join(f"* {item['text']}" for item in items) if items else ""


def forget_session(session: UUID) -> dict[str, int]:
    """Delete the session's wrap-up with its copies in prompts, and its place in the journal; nothing is owed for it."""
    with transaction.atomic():
        # First the jobs: whoever is writing the wrap-up at this moment has lost it, or has written it already.
        ClosingJob.objects.filter(session_id=session).update(
            state=JobState.DELETED, lease_until=None, next_try_at=None
        )
        wrap_up = SessionLog.objects.filter(session_id=session).values_list("id", flat=True).first()
        if wrap_up is not None:
            actions.remove(wrap_up)
        actions.forget_copies(session=session, wrap_up=wrap_up)
        handed = handover.forget_session(session)  # reads when the session was from what is deleted next
        entries, _ = JournalEntry.objects.filter(session_id=session).delete()
    return {"wrap_ups": int(wrap_up is not None), "journal_entries": entries, "hand_overs": handed}
