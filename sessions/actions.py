"""What a customer may cause in a session: say, retry, open, end, archive, delete. Short transactions, in the scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import IntegrityError, transaction

from brain import queries as brain
from memberintel.lib import analytics, clock, tokens
from memberintel.lib.ids import uuid7
from memberintel.lib.text import clean
from memberintel.llm import windows
from memberintel.privacy import participants
from memberintel.usage import charges
from memberintel.usage.models import Kind
from sessions import closing, erasure, lease, log, queries, titler
from sessions.domain import events as kinds
from sessions.domain import routing, title
from sessions.lease import OWNER
from sessions.log import KeyTaken, Lease, SessionClosed, Turn, TurnRunning
from sessions.models import CloseReason, EraseReason, ForgotReport, Session

RACES = 5
SMALLEST_WINDOW = 8_000  # tokens; no model in use reads less, so shorter messages need not ask


class Refusal(Exception):
    """What was asked for is not done; nothing was written. The text is for a person."""

    status = 400
    code = "refused"

    def __init__(self, text: str, **extra: str) -> None:
        self.text, self.extra = text, extra
        super().__init__(self.code)


class EmptyMessage(Refusal):
    """Nothing to send."""

    code = "empty_message"


class TooLong(Refusal):
    """Longer than a message may be, or than the model can read at once."""

    status = 413
    code = "message_too_long"


class NotFound(Refusal):
    """No such session for this customer."""

    status = 404
    code = "not_found"


class Conflict(Refusal):
    """The state of the session is against it."""

    status = 409
    code = "conflict"

    def __init__(self, code: str, text: str, **extra: str) -> None:
        super().__init__(text, **extra)
        self.code = code


class BudgetUsedUp(Refusal):
    """The month's answers are used up."""

    status = 402
    code = "budget_used_up"

    def __init__(self, budget: charges.Budget) -> None:
        number = f"{budget.limit:,} " if budget.limit else ""
        super().__init__(
            f"All {number}answers of this month are used up. There are new ones from {budget.renews:%-d %B} on"
            " (0:00 UTC). Your message was not sent and is kept here.",
            renews=budget.renews.isoformat(),
        )


class KeyReused(Refusal):
    """The same client key with another text."""

    status = 422
    code = "client_key_reused"


@dataclass(frozen=True, slots=True)
class Said:
    """Where a message went. `turn` has its lease and must be started, unless the message is `repeated`."""

    session: UUID
    turn: Turn
    seq: int
    opened: bool = False
    moved: bool = False
    repeated: bool = False


def say(
    *,
    text: str,
    client_key: str,
    session: UUID | None = None,
    close_previous: bool = False,
    now: datetime | None = None,
) -> Said:
    """Make the customer's message durable in the session it belongs to, and take the lease of its turn.

    Without `session` it goes to the open one. The same key and text again is the same event. Raises a
    Refusal, or TurnRunning while another answer is being given.
    """
    text = _checked(text)
    for _ in range(RACES):
        if (known := _said_before(client_key, text)) is not None:
            return known
        try:
            with transaction.atomic():
                return _say(text, client_key, session, close_previous, now or clock.now())
        except TurnRunning:
            # The turn that runs may be this very message's, sent a moment ago by another tab.
            if (known := _said_before(client_key, text)) is not None:
                return known
            raise
        except (SessionClosed, KeyTaken, IntegrityError):
            continue  # another tab, or the sweep, was a moment faster: look again
    raise Conflict(
        "busy", "Too much is happening in this conversation at once. Please send your message again."
    )


def _checked(text: str) -> str:
    text = clean(text)
    if not text.strip():
        raise EmptyMessage("There is nothing in this message. Write something first.")
    limit = settings.MESSAGE_LIMIT_CHARACTERS
    if len(text) > limit:
        raise TooLong(
            f"This message has {len(text):,} characters; the limit is {limit:,}. Please shorten it."
        )
    return text


def _count(text: str) -> int:
    count = tokens.count(text)
    if count > SMALLEST_WINDOW and count > (window := async_to_sync(windows.window)("chat")):
        raise TooLong(
            f"This message has about {count:,} tokens, more than the advisor can read at once ({window:,})."
        )
    return count


def _said_before(client_key: str, text: str) -> Said | None:
    found = log.by_client_key(client_key)
    if found is None:
        return None
    session, event = found
    if kinds.text_of(event) != text:
        raise KeyReused("This message was sent before with another text. Reload the page and send it again.")
    return Said(session, Turn(event.turn or event.id, 1, OWNER), event.seq, repeated=True)


def _say(text: str, client_key: str, target: UUID | None, close_previous: bool, now: datetime) -> Said:
    count = _count(text)
    open_session = _open()
    route = routing.route_message(
        _target(target),
        open_session=open_session,
        now=now,
        idle_seconds=settings.IDLE_SECONDS,
        close_previous=close_previous,
        lapsed=None if target or open_session else queries.lapsed(),
    )
    session, opened = _follow(route, now)
    turn = Turn(uuid7(), 1, OWNER)
    draft = kinds.user_message(text=text, tokens=count)
    seq = log.append(session, draft, turn=turn, lease=Lease.TAKE, client_key=client_key, at=now)
    if seq == 2:  # the first thing said in it
        titler.keep(session, title.from_first_words(text))
    _charge(turn.id)  # last, for others of the tenant wait for the counter
    return Said(session, turn, seq, opened=opened, moved=isinstance(route, routing.GoToOpen))


def check_budget() -> None:
    """BudgetUsedUp when no answer is left this month."""
    budget = charges.left(Kind.CHAT_TURN)
    if budget.left == 0:
        raise BudgetUsedUp(budget)


def _charge(turn: UUID) -> None:
    if not charges.take(Kind.CHAT_TURN, turn):
        raise BudgetUsedUp(charges.left(Kind.CHAT_TURN))


def _open() -> routing.Open | None:
    row = queries.open_session()
    return routing.Open(row.id, row.ended_at) if row else None


def _target(session: UUID | None) -> routing.Target | None:
    if session is None:
        return None
    row = queries.get_session(session)
    if row is None:
        raise NotFound("There is no such conversation.")
    if row.erased_at is not None:
        return routing.Target(row.id, "erased" if row.is_deleted or not row.off_record else "off_record")
    if row.archived_at is not None:
        return routing.Target(row.id, "archived")
    return routing.Target(row.id, "open" if row.is_open and not row.imported else "closed")


def _follow(route: routing.Route, now: datetime) -> tuple[UUID, bool]:
    """(session, whether it was opened just now)."""
    match route:
        case routing.Append(session) | routing.GoToOpen(session):
            return session, False
        case routing.CloseAndSucceed(close, reason, continues):
            before = Session.objects.get(id=close)
            if not closing.close(close, reason=CloseReason(reason), by="customer", now=now):
                _explain_not_closed(close)
            # Who went on writing after a long silence, off the record, has not said that it may be kept.
            return _begin(continues, now, off_record=before.off_record and continues == close), True
        case routing.OpenSuccessor(continues):
            return _begin(continues, now), True
        case routing.Conflict(code, text, session):
            raise Conflict(code, text, **({"session": str(session)} if session else {}))


def _explain_not_closed(session: UUID) -> None:
    row = Session.objects.get(id=session)
    if row.is_open:
        raise TurnRunning(row.turn_id)
    raise SessionClosed("somebody else closed it")


def _begin(continues: UUID | None, now: datetime, *, off_record: bool = False) -> UUID:
    row = Session(
        started_at=now, ended_at=now, last_activity_at=now, continues=continues, off_record=off_record
    )
    row.save(force_insert=True)
    log.append(row.id, kinds.session_opened(off_record=off_record, continues=continues), at=now)
    return row.id


# --- beside messages -------------------------------------------------------------------------------------


def open_session(
    *, close_previous: bool = False, off_record: bool = False, now: datetime | None = None
) -> UUID:
    """Open a session by hand; the id. Conflict names the open one unless `close_previous`."""
    now = now or clock.now()
    for _ in range(RACES):
        route = routing.route_opening(
            open_session=_open(), now=now, idle_seconds=settings.IDLE_SECONDS, close_previous=close_previous
        )
        try:
            with transaction.atomic():
                if isinstance(route, routing.CloseAndSucceed):
                    closing.close(route.close, reason=CloseReason(route.reason), by="customer", now=now)
                elif isinstance(route, routing.Conflict):
                    raise Conflict(route.code, route.text, session=str(route.session))
                return _begin(None, now, off_record=off_record)
        except IntegrityError:
            continue
    raise Conflict("busy", "Another page opened a conversation at the same moment. Please try again.")


def retry(*, session: UUID, turn: UUID, attempt: int) -> tuple[Turn, bool]:
    """Another attempt at the session's last turn, after attempt number `attempt`.

    The attempt that runs or ran after it, and whether this call began it: a second click does nothing.
    Raises NotFound, Conflict, TurnRunning.
    """
    row = queries.get_session(session)
    if row is None or row.turn_id != turn:
        raise NotFound("There is no such answer to try again.")
    if not row.is_open:
        raise Conflict(
            "session_closed", "This conversation is closed. Send your message again to continue it."
        )
    if row.turn_attempt > attempt:
        return Turn(turn, row.turn_attempt, row.turn_owner), False
    if log.answered(session, turn):
        raise Conflict("answered", "This message has its answer. Reload the page to see it.")
    following = Turn(turn, attempt + 1, OWNER)
    with transaction.atomic():
        if lease.take_again(session, following):
            _charge(turn)  # unless it is charged, and was not given back
            return following, True
    row.refresh_from_db()
    if row.turn_attempt > attempt:
        return Turn(turn, row.turn_attempt, row.turn_owner), False
    raise TurnRunning(row.turn_id)


def end(*, session: UUID, now: datetime | None = None) -> bool:
    """End the session; False when it was closed already. NotFound when it is not the customer's."""
    if queries.get_session(session) is None:
        raise NotFound("There is no such conversation.")
    return closing.close(session, reason=CloseReason.ENDED, by="customer", now=now or clock.now())


def archive(*, session: UUID, now: datetime | None = None) -> None:
    """Put a closed session out of the way: it is listed apart and takes no messages. Doing it again does nothing.

    Raises NotFound, and Conflict for an open one.
    """
    row = _present(session)
    if row.is_open:
        raise Conflict("session_open", "This conversation is still open. End it, then archive it.")
    Session.objects.filter(id=session, archived_at=None).update(archived_at=now or clock.now())


def unarchive(*, session: UUID) -> None:
    """Take a session out of the archive; it can be continued again. Doing it again does nothing. NotFound."""
    _present(session)
    Session.objects.filter(id=session).update(archived_at=None)


def forgot(*, session: UUID) -> None:
    """The customer says that the advisor forgot something: counted once a turn, without a word of it. NotFound."""
    row = _present(session)
    ForgotReport.objects.bulk_create(
        [ForgotReport(session_id=row.id, turn=row.turn_id)], ignore_conflicts=True
    )
    analytics.record("reported_forgotten")


def _present(session: UUID) -> Session:
    row = queries.get_session(session)
    if row is None or row.is_deleted:
        raise NotFound("There is no such conversation.")
    return row


def delete(*, session: UUID, now: datetime | None = None) -> bool:
    """Delete the session whole; False when that was done before. An open one is closed first, with nothing owed.

    Its events, search terms and title go, and what other apps keep of it, with every copy in prompts, all in one
    transaction; a shell without words stays. A running turn loses the right to write. NotFound when it is not the
    customer's.
    """
    with transaction.atomic():
        row = Session.objects.select_for_update().filter(id=session).first()
        if row is None:
            raise NotFound("There is no such conversation.")
        if row.is_deleted:
            return False
        closing.close(session, reason=CloseReason.ERASED, by="customer", now=now or clock.now())
        participants.forget_session(session)
        if row.erased_at is None and not (row.off_record and row.is_open):
            erasure.erase(session, EraseReason.CUSTOMER)
        else:  # its events are gone already, since it was off the record or old; now nothing of it is listed
            Session.objects.filter(id=session).update(erase_reason=EraseReason.CUSTOMER)
        transaction.on_commit(lambda: analytics.record("session_deleted"))
    return True


def leave(*, session: UUID, now: datetime | None = None) -> None:
    """A page said goodbye: the session closes when nobody comes back within the grace."""
    Session.objects.filter(id=session, closed_at=None, leaving_at=None).update(leaving_at=now or clock.now())


def stay() -> None:
    """A page of the product is shown: nobody has left."""
    Session.objects.filter(closed_at=None, leaving_at__isnull=False).update(leaving_at=None)


def _left(sections: list[kinds.SectionDigest]) -> list[kinds.SectionDigest]:
    """Those whose text is still there."""
    parts = brain.prompt_parts([(section["name"], section["digest"]) for section in sections])
    return [section for section, part in zip(sections, parts, strict=True) if part.text is not None]


def refresh_prompt() -> bool:
    """After a source of prompts was removed: state the open session's prompt anew, without it.

    From then on its model no longer sees that something was there. True when that touched an open session.
    """
    row = queries.open_session()
    if row is None:
        return False
    events = log.load_live(row.id)
    stated = [event for event in events if event.kind in kinds.PROMPT_KINDS]
    sections = stated[-1].payload["sections"] if stated else []
    left = _left(sections)
    recalled = [part for event in events if event.kind == kinds.RECALL for part in event.payload["sections"]]
    if not stated or (len(left) == len(sections) and len(_left(recalled)) == len(recalled)):
        return False
    draft = kinds.prompt_refreshed(sections=left, tools=kinds.tools_offered(stated[-1]))
    try:
        with transaction.atomic():
            log.append(row.id, draft)
    except SessionClosed:
        return False
    return True
