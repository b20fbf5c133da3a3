"""Reading wrap-ups, in the current scope. Another customer's wrap-up does not exist here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memberintel.lib import paging
from memberintel.tenancy.context import current_tenant_id
from memberintel.tenancy.models import Tenant
from memberintel.vault.errors import CannotOpen
from wrapups.models import ClosingJob, JobKind, JobState, SessionLog

PAGE = 20


@dataclass(frozen=True)
class WrapUpItem:
    """A decision, open item or fact. `messages` are numbers of the session's messages; a person's own has none."""

    id: str
    text: str
    messages: tuple[int, ...]


@dataclass(frozen=True)
class WrapUp:
    """A wrap-up, opened. When it cannot be opened, `readable` is false and the texts are empty."""

    id: UUID
    session_id: UUID
    session_started_at: datetime
    session_last_activity_at: datetime
    created_at: datetime
    readable: bool
    summary: str
    decisions: tuple[WrapUpItem, ...]
    open_items: tuple[WrapUpItem, ...]
    new_context: tuple[WrapUpItem, ...]
    next_session_note: str
    model: str
    word_count: int
    shortened: bool
    dropped: int
    edited_at: datetime | None


@dataclass(frozen=True)
class Owed:
    """Work owed or not owed for a closed session; `state` is one of JobState."""

    job_id: UUID
    session_id: UUID
    session_started_at: datetime
    session_last_activity_at: datetime
    state: str
    last_error: str


def list_wrap_ups(
    *, before: datetime | None = None, before_id: UUID | None = None, limit: int = PAGE
) -> list[WrapUp]:
    """Wrap-ups by their session's last activity, newest first; the cursor is the last one of the page before
    (`session_last_activity_at`, `id`). HalfACursor when only one half of it is given."""
    paging.check(before, before_id)
    rows = SessionLog.objects.order_by("-session_last_activity_at", "-id")
    if before is not None:
        rows = rows.filter(
            Q(session_last_activity_at__lt=before) | Q(session_last_activity_at=before, id__lt=before_id)
        )
    return [opened(row) for row in rows[:limit]]


def get_wrap_up(wrap_up: UUID) -> WrapUp | None:
    """The wrap-up, or None."""
    row = SessionLog.objects.filter(id=wrap_up).first()
    return opened(row) if row else None


def wrap_up_of(session: UUID) -> WrapUp | None:
    """The session's wrap-up, or None."""
    row = SessionLog.objects.filter(session_id=session).first()
    return opened(row) if row else None


def state_of(session: UUID) -> str | None:
    """Where the session's wrap-up stands (see JobState); None while the session is open."""
    return states_of([session]).get(session)


def states_of(sessions: Iterable[UUID]) -> dict[UUID, str]:
    """The same for several sessions, in one query."""
    rows = ClosingJob.objects.filter(session_id__in=list(sessions), kind=JobKind.WRAP_UP)
    return dict(rows.values_list("session_id", "state"))


def list_pending(limit: int = 10) -> list[Owed]:
    """Closed sessions whose wrap-up is still being written or has failed, newest first."""
    rows = _jobs().filter(state__in=[JobState.QUEUED, JobState.FAILED])
    return [_owed(row) for row in rows[:limit]]


def newest_closed() -> Owed | None:
    """The customer's newest closed session that was worth a wrap-up, and where that stands."""
    rows = _jobs().exclude(state__in=[JobState.TRIVIAL, JobState.OFF_RECORD])
    row = rows.first()
    return _owed(row) if row else None


def owed_for(session: UUID) -> Owed | None:
    """Where the session's wrap-up stands, with its job; None while the session is open."""
    row = _jobs().filter(session_id=session).first()
    return _owed(row) if row else None


def injected_count() -> int:
    """How many wrap-ups the tenant's tier puts into a prompt."""
    return Tenant.objects.select_related("tier").get(id=current_tenant_id()).tier.wrap_ups_injected


def recent_rows(count: int, also: UUID | None) -> list[SessionLog]:
    """The `count` newest wrap-ups and that of the session `also`, oldest first, still sealed."""
    ordered = SessionLog.objects.order_by("-session_last_activity_at", "-id")
    rows = list(ordered[:count])
    if also is not None and also not in {row.session_id for row in rows}:
        rows += list(ordered.filter(session_id=also))
    return (
        rows[::-1] if also is None else sorted(rows, key=lambda row: (row.session_last_activity_at, row.id))
    )


def opened(row: SessionLog) -> WrapUp:
    """The row as a value."""
    try:
        texts: dict[str, Any] = {
            "summary": row.summary,
            "decisions": _items(row.decisions),
            "open_items": _items(row.open_items),
            "new_context": _items(row.new_context),
            "next_session_note": row.next_session_note,
        }
        readable = True
    except CannotOpen:
        readable = False
        texts = {"summary": "", "decisions": (), "open_items": (), "new_context": (), "next_session_note": ""}
    return WrapUp(
        id=row.id,
        session_id=row.session_id,
        session_started_at=row.session_started_at,
        session_last_activity_at=row.session_last_activity_at,
        created_at=row.created_at,
        readable=readable,
        model=row.model,
        word_count=row.word_count,
        shortened=row.shortened,
        dropped=row.dropped,
        edited_at=row.edited_at,
        **texts,
    )


def _jobs() -> Any:
    return ClosingJob.objects.filter(kind=JobKind.WRAP_UP).order_by("-session_last_activity_at", "-id")


def _items(stored: Sequence[Mapping[str, Any]]) -> tuple[WrapUpItem, ...]:
    return tuple(WrapUpItem(item["id"], item["text"], tuple(item["messages"])) for item in stored)


def _owed(row: ClosingJob) -> Owed:
    return Owed(
        job_id=row.id,
        session_id=row.session_id,
        session_started_at=row.session_started_at,
        session_last_activity_at=row.session_last_activity_at,
        state=row.state,
        last_error=row.last_error,
    )
