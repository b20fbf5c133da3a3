"""Reading sessions, in the current scope. A session of another customer does not exist here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal
from uuid import UUID

from django.db.models import Q, QuerySet

from memberintel.lib import clock, paging
from sessions import log
from sessions.domain import cuts, projection
from sessions.domain import events as kinds
from sessions.domain.cuts import Span
from sessions.domain.events import Event
from sessions.domain.transcript import AnswerItem, Item, MessageItem, PromptItem, ui_transcript
from sessions.models import GONE, CloseReason, Session, SessionEvent

PAGE = 30
EVENTS = 150  # of a log on one page
PROMPTS = 10
NEWEST = 500
BRIEFED = 10_000  # prompts and recalls of one session that are looked through


@dataclass(frozen=True, slots=True)
class Line:
    """A message or an answer as a wrap-up reads it: numbered from 1 in the order of the log, where it stands from `seq`
    through `through`."""

    number: int
    seq: int
    through: int
    role: Literal["customer", "advisor"]
    at: datetime
    text: str


def get_session(session: UUID) -> Session | None:
    """The session, or None."""
    return Session.objects.filter(id=session).first()


def kept(session: UUID) -> bool:
    """Whether its words are still there to be read."""
    return SessionEvent.objects.filter(session_id=session).exists()


def open_session() -> Session | None:
    """The customer's open session, if there is one."""
    return Session.objects.filter(closed_at=None, imported=False).first()


def lapsed() -> UUID | None:
    """The customer's last session, where silence ended it and it can go on; None else."""
    row = Session.objects.order_by("-last_activity_at", "-id").first()
    if row is None or row.close_reason != CloseReason.IDLE:
        return None
    return None if row.off_record or row.imported or row.archived_at or row.erased_at else row.id


def list_sessions(
    *,
    before: datetime | None = None,
    before_id: UUID | None = None,
    open: bool | None = None,
    archived: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = PAGE,
) -> list[Session]:
    """Sessions by last activity, newest first, at most `limit`; the cursor is the last one of the page before.

    None that were deleted; only those that are `open` (or not), `archived` (or not), and last active from `since`
    until before `until`.
    Raises HalfACursor when only one half of the cursor is given.
    """
    paging.check(before, before_id)
    rows = Session.objects.filter(archived_at__isnull=not archived).order_by("-last_activity_at", "-id")
    rows = rows.filter(Q(erase_reason=None) | ~Q(erase_reason__in=GONE))
    if before is not None:
        rows = rows.filter(Q(last_activity_at__lt=before) | Q(last_activity_at=before, id__lt=before_id))
    if open is not None:
        rows = rows.filter(closed_at__isnull=open)
    if since is not None:
        rows = rows.filter(last_activity_at__gte=since)
    if until is not None:
        rows = rows.filter(last_activity_at__lt=until)
    return list(rows[:limit])


def spans(wanted: Iterable[UUID]) -> dict[UUID, tuple[datetime, datetime]]:
    """First and last message of the customer in each of these sessions, without those that are not theirs or that
    they had deleted."""
    rows = Session.objects.filter(id__in=list(wanted)).exclude(erase_reason__in=GONE)
    return {
        session: (started, ended)
        for session, started, ended in rows.values_list("id", "started_at", "ended_at")
    }


def part_digests(session: UUID) -> list[str]:
    """As `projection.part_digests`, of the session as it stands."""
    stated = [*kinds.PROMPT_KINDS, kinds.RECALL, kinds.COMPACTION_APPLIED]
    return projection.part_digests(log.load_kinds(session, stated, after=0, limit=BRIEFED))


def running_turn(session: Session) -> UUID | None:
    """The turn that runs in the session at this moment, wherever it runs."""
    until = session.turn_lease_until
    return session.turn_id if until is not None and until > clock.now() else None


def session_of_turn(turn: UUID) -> UUID | None:
    """The session whose newest turn this is."""
    return Session.objects.filter(turn_id=turn, closed_at=None).values_list("id", flat=True).first()


def newest_attempts(session: UUID) -> list[tuple[UUID, int]]:
    """(turn, attempt) of the session's newest answers: more than anybody can still follow while they are streamed."""
    newest = SessionEvent.objects.filter(session_id=session).order_by("-seq").values_list("turn", "attempt")
    return list({(turn, attempt) for turn, attempt in newest[:NEWEST] if turn is not None})


def message_seq(session: UUID, turn: UUID) -> int:
    """The number of the turn's message in the log; 1 when it has none."""
    found = _messages(session).filter(turn=turn)
    return found.values_list("seq", flat=True).first() or 1


def _messages(session: UUID) -> QuerySet[SessionEvent]:
    return SessionEvent.objects.filter(session_id=session, kind=kinds.USER_MESSAGE)


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a session's log as a person sees it, and where it stands in the whole."""

    items: list[Item]
    span: Span


def transcript_part(
    session: Session,
    *,
    before: int | None = None,
    after: int | None = None,
    at: int | None = None,
    size: int | None = None,
) -> Part:
    """About `size` events of the log, as a person sees them, with no turn cut in two; from its beginning.

    Or those `before` an event or `after` one, as the span of a part names them, or those around the one `at`. Reads
    as much of a long log as of a short one.
    """
    end, size = session.last_seq, size or EVENTS
    marks = partial(log.marks, session.id)
    if before is not None:
        span = cuts.before(marks, end=end, seq=before, size=size)
    elif at is not None:
        span = cuts.around(marks, end=end, seq=at, size=size)
    else:
        span = cuts.after(marks, end=end, seq=after or 0, size=size)
    return Part(_items(session, span.first, span.last if span.later else None), span)


def newest_part(session: Session, *, size: int | None = None) -> Part:
    """The end of the log, what is appended at this moment included."""
    span = cuts.newest(partial(log.marks, session.id), end=session.last_seq, size=size or EVENTS)
    return Part(_items(session, span.first, None), span)


def _items(session: Session, first: int, last: int | None) -> list[Item]:
    events = log.load(session.id, after=first - 1, through=last)
    running = running_turn(session) if last is None else None
    return ui_transcript(events, running, session.turn_attempt, to_the_end=last is None)


def prompts(session: Session) -> list[PromptItem]:
    """What the advisor of the session was told of late, each time it was; [] before its first message."""
    items = ui_transcript(log.load_prompts(session.id, newest=PROMPTS))
    return [item for item in items if isinstance(item, PromptItem)]


def turn_items(session: Session, turn: UUID) -> list[Item]:
    """What the session's log has of that turn, as a person sees it; [] when there is no such turn in it."""
    first = _messages(session.id).filter(turn=turn).values_list("seq", flat=True).first()
    if first is None:
        return []
    following = (
        _messages(session.id).filter(seq__gt=first).order_by("seq").values_list("seq", flat=True).first()
    )
    return _items(session, first, following - 1 if following else None)


def transcript_lines(session: UUID) -> list[Line]:
    """The session's messages and answers from its raw log: no tools, no reasoning, no injected context.

    Of several attempts at an answer the last one stands, cut off or not, with what the customer saw of it.
    CannotOpen without the key.
    """
    return list(lines_after(session))


def lines_after(session: UUID, *, after: int = 0, count: int = 0) -> Iterator[Line]:
    """The same, line by line, of what stands behind `after` in the log, numbered on from `count`.

    Read in batches, whole turns at a time, so that a long log is never in memory with all its tool traffic.
    """
    held: list[Event] = []
    while batch := log.load_kinds(session, _SAID, after=after, limit=_BATCH):
        after = batch[-1].seq
        begun = [at for at, event in enumerate(batch) if event.kind == kinds.USER_MESSAGE]
        if not begun:
            held += batch
            continue
        for line in _lines(held + batch[: begun[-1]], count):
            count = line.number
            yield line
        held = batch[begun[-1] :]
        if len(batch) < _BATCH:
            break
    yield from _lines(held, count)


def transcript_tokens(session: UUID) -> int:
    """About how many tokens its messages and answers have, counted when they were written. Opens nothing."""
    return log.tokens_of(session, (kinds.USER_MESSAGE, kinds.ASSISTANT_TURN))


_SAID = (kinds.USER_MESSAGE, kinds.PENDING_STATE, kinds.ASSISTANT_TURN, kinds.TURN_FAILED)
_BATCH = 500


def _lines(events: list[Event], count: int) -> list[Line]:
    """The lines of whole turns."""
    items = ui_transcript(events, running=None)
    final = {item.turn or item.id: item for item in items if isinstance(item, AnswerItem)}
    lines: list[Line] = []
    for item in items:
        if isinstance(item, MessageItem):
            role: Literal["customer", "advisor"] = "customer"
        elif isinstance(item, AnswerItem) and final[item.turn or item.id] is item:
            role = "advisor"
        else:
            continue
        if item.readable and item.text.strip():
            count += 1
            through = item.seqs[-1] if isinstance(item, AnswerItem) and item.seqs else item.seq
            lines.append(Line(count, item.seq, through, role, item.at, item.text))
    return lines
