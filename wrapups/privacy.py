"""What happens to wrap-ups when a customer's things are destroyed. In the customer's scope."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from wrapups import actions
from wrapups.handover import actions as handover
from wrapups.models import ClosingJob, JobState, JournalEntry, SessionLog


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
