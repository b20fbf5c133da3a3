"""Reading wrap-ups, in the current scope. Another customer's wrap-up does not exist here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memberintel.lib import clock, paging
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.tenancy.models import Tenant
from memberintel.vault.errors import CannotOpen, Damaged
from memberintel.vault.fields import Sealed
from wrapups import search
from wrapups.domain.open_items import SHOWN_TO_WRITER, Mark, OpenItem, Status
from wrapups.domain.states import DAILY_TRIES, UNFUNDED_FOR
from wrapups.models import ClosingJob, JobKind, JobState, SessionLog

PAGE = 20


@dataclass(frozen=True)
class WrapUpItem:
    """A decision, open item or fact. `messages` are numbers of the session's messages, `seqs` their places in its log;
    a person's own has none. Of an open item, `status` and `mark` say what became of it."""

    id: str
    text: str
    messages: tuple[int, ...]
    seqs: tuple[int, ...] = ()
    status: Status = "open"
    mark: Mark | None = None


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
    edited_by_staff: bool = False

    @property
    def lasted(self) -> bool:
        """Whether its session had a length."""
        return self.session_last_activity_at - self.session_started_at >= timedelta(minutes=1)

    @property
    def still_open(self) -> int:
        """How many of its open items are open."""
        return sum(item.status == "open" for item in self.open_items)


@dataclass(frozen=True)
class Owed:
    """Work owed or not owed for a closed session; `state` is one of JobState. What is `given_up` failed too often to be
    tried again by itself."""

    job_id: UUID
    session_id: UUID
    session_started_at: datetime
    session_last_activity_at: datetime
    state: str
    last_error: str
    given_up: bool


def list_wrap_ups(
    *,
    before: datetime | None = None,
    before_id: UUID | None = None,
    q: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    open_items: bool = False,
    limit: int = PAGE,
) -> list[WrapUp]:
    """Wrap-ups by their session's last activity, newest first; the cursor is the last one of the page before
    (`session_last_activity_at`, `id`). HalfACursor when only one half of it is given.

    Only those that have every word of `q`, of sessions last active from `since` until before `until`, and with
    `open_items` those of which something is still open.
    """
    paging.check(before, before_id)
    among = {item.wrap_up for item in open_items_of(status="open", limit=_MOST_OPEN)} if open_items else None
    rows = SessionLog.objects.order_by("-session_last_activity_at", "-id")
    if q.strip():
        place = {"before": before, "before_id": before_id, "since": since, "until": until}
        rows = rows.filter(id__in=search.find(q, limit=limit, among=among, **place))  # type: ignore[arg-type]
        return _with_marks(list(rows))
    if before is not None:
        rows = rows.filter(
            Q(session_last_activity_at__lt=before) | Q(session_last_activity_at=before, id__lt=before_id)
        )
    if since is not None:
        rows = rows.filter(session_last_activity_at__gte=since)
    if until is not None:
        rows = rows.filter(session_last_activity_at__lt=until)
    if among is not None:
        rows = rows.filter(id__in=among)
    return _with_marks(list(rows[:limit]))


_MOST_OPEN = 2_000  # open items that are looked through for a list


def get_wrap_up(wrap_up: UUID) -> WrapUp | None:
    """The wrap-up, or None."""
    found = _with_marks(list(SessionLog.objects.filter(id=wrap_up)))
    return found[0] if found else None


def wrap_up_of(session: UUID) -> WrapUp | None:
    """The session's wrap-up, or None."""
    found = _with_marks(list(SessionLog.objects.filter(session_id=session)))
    return found[0] if found else None


def wrap_up_id_of(session: UUID) -> UUID | None:
    """The id of the session's wrap-up, or None."""
    return SessionLog.objects.filter(session_id=session).values_list("id", flat=True).first()


def state_of(session: UUID) -> str | None:
    """Where the session's wrap-up stands (see JobState); None while the session is open."""
    return states_of([session]).get(session)


def states_of(sessions: Iterable[UUID]) -> dict[UUID, str]:
    """The same for several sessions, in one query."""
    rows = ClosingJob.objects.filter(session_id__in=list(sessions), kind=JobKind.WRAP_UP)
    return dict(rows.values_list("session_id", "state"))


def list_pending(limit: int = 10) -> list[Owed]:
    """Closed sessions whose wrap-up is still being written, has failed or finds no budget, newest first."""
    lately = Q(state=JobState.UNFUNDED, created_at__gt=clock.now() - UNFUNDED_FOR)
    rows = _jobs().filter(Q(state__in=[JobState.QUEUED, JobState.FAILED]) | lately)
    return [_owed(row) for row in rows[:limit]]


def list_states(
    *,
    state: str | None = None,
    before: datetime | None = None,
    before_id: UUID | None = None,
    limit: int = PAGE,
) -> list[Owed]:
    """What became of the notes of each closed session, newest first; the cursor is (`session_last_activity_at`,
    `job_id`) of the last one of the page before. Only those in that `state`."""
    paging.check(before, before_id)
    rows = _jobs()
    if state is not None:
        rows = rows.filter(state=state)
    if before is not None:
        rows = rows.filter(
            Q(session_last_activity_at__lt=before) | Q(session_last_activity_at=before, id__lt=before_id)
        )
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


# --- open items, wherever they were written down ---------------------------------------------------------

# The newest mark says where an item stands. Nothing is opened for it.
_ITEMS = """
SELECT item.id::uuid, log.id, log.session_id, log.session_started_at, log.session_last_activity_at, log.edited_at,
  mark.state, mark.at, mark.session_id, mark.seq
FROM session_logs AS log
CROSS JOIN LATERAL jsonb_array_elements_text(log.open_item_ids) WITH ORDINALITY AS item (id, place)
LEFT JOIN LATERAL (
  SELECT m.state, m.at, m.session_id, m.seq FROM item_resolutions AS m
  WHERE m.tenant_id = log.tenant_id AND m.customer_id = log.customer_id AND m.wrap_up_id = log.id
    AND m.item_id = item.id::uuid
  ORDER BY m.id DESC LIMIT 1) AS mark ON true
WHERE log.tenant_id = %(tenant)s AND log.customer_id = %(customer)s
  AND (%(wrap_ups)s::uuid[] IS NULL OR log.id = ANY(%(wrap_ups)s))
  AND (%(until)s::timestamptz IS NULL OR log.session_last_activity_at < %(until)s)
  AND (%(before)s::timestamptz IS NULL
    OR (log.session_last_activity_at, log.id) < (%(before)s, %(before_id)s::uuid))
  AND (%(status)s::text IS NULL
    OR CASE coalesce(mark.state, 'reopened') WHEN 'resolved' THEN 'resolved' WHEN 'asked' THEN 'parked' ELSE 'open' END
       = %(status)s
    OR mark.state = 'asked' AND mark.session_id = %(asking)s::uuid)
ORDER BY log.session_last_activity_at DESC, log.id DESC, item.place
LIMIT %(limit)s
"""


def open_items_of(
    *,
    status: Status | None = None,
    wrap_ups: Collection[UUID] | None = None,
    until: datetime | None = None,
    before: datetime | None = None,
    before_id: UUID | None = None,
    asking: UUID | None = None,
    limit: int = 1000,
) -> list[OpenItem]:
    """Open items of the customer's wrap-ups with what became of them, those of the newest session first.

    Only those with this `status` (and those that the session `asking` asked about), of these wrap-ups, of sessions
    last active before `until`. The cursor (`before`, `before_id`) is the wrap-up of the last one of the page before:
    a page ends with a whole wrap-up.
    """
    paging.check(before, before_id)
    with connection.cursor() as cursor:
        cursor.execute(
            _ITEMS,
            {
                "tenant": current_tenant_id(),
                "customer": current_customer_id(),
                "wrap_ups": None if wrap_ups is None else list(wrap_ups),
                "until": until,
                "before": before,
                "before_id": before_id,
                "status": status,
                "asking": asking,
                "limit": limit,
            },
        )
        return [_open_item(*row) for row in cursor]


def whole_wrap_ups(found: list[OpenItem], limit: int) -> tuple[list[OpenItem], bool]:
    """Of `limit` + 1 items those of a page, which ends with a whole wrap-up; and whether there are more."""
    if len(found) <= limit:
        return found, False
    shown = [item for item in found if item.wrap_up != found[-1].wrap_up]
    # A single wrap-up that is more than a page is given as far as it was read; it has no end to go on from.
    return (shown, True) if shown else (found, True)


def open_before(session: UUID, last_activity_at: datetime) -> list[OpenItem]:
    """What was still open of sessions before this one, the newest first: what its notes may find settled."""
    found = open_items_of(status="open", until=last_activity_at, asking=session, limit=SHOWN_TO_WRITER)
    return [item for item in found if item.session != session]


def texts_of(items: Collection[OpenItem]) -> dict[UUID, str]:
    """The text of each item by its id; those of a wrap-up that is damaged are left out."""
    if not items:
        return {}
    wanted = {item.id for item in items}
    with connection.cursor() as cursor:
        cursor.execute(
            _OPEN_ITEMS, [current_tenant_id(), current_customer_id(), list({item.wrap_up for item in items})]
        )
        rows = [SessionLog(id=wrap_up, open_items=Sealed(sealed)) for wrap_up, sealed in cursor]
    found: dict[UUID, str] = {}
    for row in rows:
        try:
            found |= {UUID(each["id"]): each["text"] for each in row.open_items if UUID(each["id"]) in wanted}
        except Damaged:
            continue
    return found


_OPEN_ITEMS = (
    "SELECT id, open_items FROM session_logs WHERE tenant_id = %s AND customer_id = %s AND id = ANY(%s)"
)


def _open_item(
    item: UUID,
    wrap_up: UUID,
    session: UUID,
    started_at: datetime,
    last_activity_at: datetime,
    edited_at: datetime | None,
    state: str | None,
    at: datetime | None,
    by: UUID | None,
    seq: int | None,
) -> OpenItem:
    mark = Mark(state, at, by, seq) if state is not None and at is not None else None
    since = max(last_activity_at, edited_at) if edited_at else last_activity_at
    return OpenItem(item, wrap_up, session, started_at, last_activity_at, since, edited_at is not None, mark)


# --- as values -------------------------------------------------------------------------------------------


def _with_marks(rows: Sequence[SessionLog]) -> list[WrapUp]:
    """The rows as values, their open items with what became of them."""
    marked = open_items_of(wrap_ups=[row.id for row in rows]) if rows else []
    known = {str(item.id): item for item in marked}
    return [_opened(row, known) for row in rows]


def _opened(row: SessionLog, known: Mapping[str, OpenItem]) -> WrapUp:
    try:
        texts: dict[str, Any] = {
            "summary": row.summary,
            "decisions": _items(row.decisions),
            "open_items": tuple(_standing(item, known.get(item.id)) for item in _items(row.open_items)),
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
        edited_by_staff=row.edited_by not in (None, row.customer_id),
        **texts,
    )


def _jobs() -> Any:
    return ClosingJob.objects.filter(kind=JobKind.WRAP_UP).order_by("-session_last_activity_at", "-id")


def _items(stored: Sequence[Mapping[str, Any]]) -> tuple[WrapUpItem, ...]:
    return tuple(
        WrapUpItem(item["id"], item["text"], tuple(item["messages"]), tuple(item.get("seqs", ())))
        for item in stored
    )


def _standing(item: WrapUpItem, known: OpenItem | None) -> WrapUpItem:
    return replace(item, status=known.status, mark=known.mark) if known else item


def _owed(row: ClosingJob) -> Owed:
    return Owed(
        job_id=row.id,
        session_id=row.session_id,
        session_started_at=row.session_started_at,
        session_last_activity_at=row.session_last_activity_at,
        state=row.state,
        last_error=row.last_error,
        given_up=row.state == JobState.FAILED and row.daily_tries >= DAILY_TRIES,
    )
