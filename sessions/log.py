"""The event log: the one append, and loading it back. Nothing else writes `session_events`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from brain import queries as brain
from brain.domain.prompt import assemble
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.vault import cipher, damage, keyring
from memberintel.vault.errors import Damaged
from sessions.domain import events as kinds
from sessions.domain.cuts import Mark
from sessions.domain.events import Draft, Event
from sessions.signals import event_appended

logger = logging.getLogger(__name__)

TABLE, COLUMN = "session_events", "sealed"


class LogError(Exception):
    """An event was not appended; nothing was written."""


class SessionMissing(LogError):
    """There is no such session for this customer."""


class SessionClosed(LogError):
    """The session is closed: its log takes nothing more."""


class TurnRunning(LogError):
    """Another turn runs in the session. `turn` is its id."""

    def __init__(self, turn: UUID | None) -> None:
        self.turn = turn
        super().__init__("a turn is running")


class LeaseLost(LogError):
    """The turn no longer runs here: it lapsed, was stopped from outside, or another attempt began."""


class KeyTaken(LogError):
    """The customer has used this client key before."""


class Overtaken(LogError):
    """Another compaction has come since the one that this one was planned from."""


class Lease(StrEnum):
    """What an append does to the session's turn: see the SQL function."""

    NONE = "none"
    TAKE = "take"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Turn:
    """An attempt at a turn, and the process that believes it runs it."""

    id: UUID
    attempt: int
    owner: str


_APPEND = (
    "SELECT app.append_event(%s, %s, %s, %s::jsonb, %s, %s, %s::integer, %s, %s, %s, %s,"
    " %s::double precision, %s)"
)
_CLOSE = "SELECT app.close_session(%s, %s, %s::jsonb, %s, %s, %s, %s)"
_AND_DO_NOT_WAIT = ", set_config('synchronous_commit', 'off', true)"
_CLOSED = (
    "SELECT id, tenant_id, customer_id, started_at, ended_at, last_activity_at, close_reason, off_record, imported,"
    " substantive, user_messages FROM sessions WHERE id = %s"
)


@dataclass(frozen=True, slots=True)
class Closed:
    """What is told of a session that has closed."""

    id: UUID
    tenant_id: UUID
    customer_id: UUID
    started_at: datetime
    ended_at: datetime
    last_activity_at: datetime
    close_reason: str
    off_record: bool
    imported: bool
    substantive: bool
    user_messages: int


def append(
    session: UUID,
    draft: Draft,
    *,
    turn: Turn | None = None,
    lease: Lease = Lease.NONE,
    client_key: str | None = None,
    at: datetime | None = None,
) -> int:
    """Add one event to the session's log and return its sequence number (1, 2, 3, ... without a gap).

    Durable when the surrounding transaction commits; on its own it is one. `at` defaults to now. Raises
    SessionMissing, SessionClosed, TurnRunning, LeaseLost or KeyTaken, and CannotOpen when the customer's key
    cannot be had; a transaction it was called in must then roll back.
    """
    event = uuid7()
    row = (
        session,
        event,
        draft.kind,
        _clear(draft),
        _seal(event, draft),
        turn.id if turn else None,
        turn.attempt if turn else 0,
        client_key,
        at or clock.now(),
        lease.value,
        turn.owner if turn else "",
        settings.TURN_LEASE_SECONDS,
        draft.kind == kinds.USER_MESSAGE and draft.payload["tokens"] >= settings.SUBSTANTIVE_TOKENS,
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute(_APPEND, row)
            seq = int(cursor.fetchone()[0])
    except DatabaseError as error:
        raise _meaning(error) from error
    event_appended.send(sender=None, session=session, kind=draft.kind)
    return seq


def append_compaction(
    session: UUID,
    drafts: Sequence[Draft],
    *,
    expecting: int | None,
    turn: Turn | None = None,
    lease: Lease = Lease.NONE,
) -> int:
    """Append a compaction and what follows from it, whole or not at all; the compaction's sequence number.

    Only if the session's newest compaction is still number `expecting` (None: there is none): Overtaken else,
    and nothing is written. Raises as `append` does.
    """
    compaction, *others = drafts
    with transaction.atomic():
        # The append comes first: it holds the session's row, so nobody can add one between look and commit.
        seq = append(session, compaction, turn=turn, lease=lease)
        if _compaction_before(session, seq) != expecting:
            raise Overtaken("another compaction came first")
        for draft in others:
            append(session, draft, turn=turn, lease=lease)
    return seq


def _compaction_before(session: UUID, seq: int) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST_COMPACTION, [current_tenant_id(), session, seq])
        row = cursor.fetchone()
    return int(row[0]) if row else None


def append_close(
    session: UUID,
    draft: Draft,
    *,
    reason: str,
    at: datetime,
    before: datetime | None = None,
    wait: bool = True,
) -> Closed | None:
    """Close the session with its last event; None for everybody but the one who closed it.

    For `idle` and `stream_closed`, `before` is the time until which there must have been silence, or the
    goodbye, for the close to hold; a running turn holds both off. Without `wait` the commit does not wait for the
    disk.
    """
    event = uuid7()
    row = (session, event, _clear(draft), _seal(event, draft), reason, at, before)
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE if wait else _CLOSE + _AND_DO_NOT_WAIT, row)
        if cursor.fetchone()[0] is None:
            return None
        cursor.execute(_CLOSED, [session])
        return Closed(*cursor.fetchone())


def _clear(draft: Draft) -> str:
    return json.dumps(draft.payload, separators=(",", ":"))


def _seal(event: UUID, draft: Draft) -> bytes:
    return cipher.seal_with(_key().key, kinds.encode(draft.content), _aad() + event.bytes)


def _key() -> keyring.OpenKey:
    return keyring.key_of(keyring.customer_owner())


def _aad() -> bytes:
    return cipher.column_aad(current_tenant_id(), current_customer_id(), TABLE, COLUMN)


def _meaning(error: DatabaseError) -> Exception:
    cause: Any = error.__cause__
    state = getattr(cause, "sqlstate", None)
    if state == "MI002":
        detail = cause.diag.message_detail
        return TurnRunning(UUID(detail) if detail else None)
    if state == "23505" and cause.diag.constraint_name == "session_events_client_key":
        return KeyTaken("the client key was used before")
    meanings: dict[str | None, type[LogError]] = {
        "MI404": SessionMissing,
        "MI001": SessionClosed,
        "MI003": LeaseLost,
    }
    return meanings[state](str(cause)) if state in meanings else error


# --- bringing back ---------------------------------------------------------------------------------------

_RESTORE = (
    "INSERT INTO session_events (session_id, seq, id, tenant_id, customer_id, turn, attempt, client_key, kind,"
    " payload, sealed, created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s)"
)
_BROKEN = """
SELECT count(*) FROM sessions s LEFT JOIN (
  SELECT session_id, count(*) AS events, max(seq) AS last FROM session_events
  WHERE tenant_id = %(tenant)s AND customer_id = %(customer)s GROUP BY session_id
) e ON e.session_id = s.id
WHERE s.tenant_id = %(tenant)s AND s.customer_id = %(customer)s
  AND e.events IS NOT NULL AND (e.events <> s.last_seq OR e.last <> s.last_seq)
"""


def restore(session: UUID, event: Event, *, client_key: str | None) -> None:
    """Put back an event that was taken out in an archive, under its own number: an import into an empty account.

    The session's row is there already and says how many there are; see `broken`.
    """
    draft = Draft(event.kind, event.payload, event.content)
    row = (
        session,
        event.seq,
        event.id,
        current_tenant_id(),
        current_customer_id(),
        event.turn,
        event.attempt,
        client_key,
        event.kind,
        _clear(draft),
        _seal(event.id, draft),
        event.at,
    )
    with connection.cursor() as cursor:
        cursor.execute(_RESTORE, row)


def broken() -> int:
    """How many sessions of the current scope have some of their events and not all."""
    ids = {"tenant": current_tenant_id(), "customer": current_customer_id()}
    with connection.cursor() as cursor:
        cursor.execute(_BROKEN, ids)
        (count,) = cursor.fetchone()
    return int(count)


# --- loading ---------------------------------------------------------------------------------------------

_COLUMNS = "seq, id, kind, turn, attempt, payload, sealed, created_at"
_LOAD = (
    f"SELECT {_COLUMNS} FROM session_events WHERE tenant_id = %s AND session_id = %s"  # noqa: S608
    " AND seq > %s AND seq <= %s ORDER BY seq"
)
_OF_KINDS = (
    f"SELECT {_COLUMNS} FROM session_events WHERE tenant_id = %s AND session_id = %s"  # noqa: S608
    " AND seq > %s AND kind = ANY(%s) ORDER BY seq LIMIT %s"
)
_TOKENS = (
    "SELECT coalesce(sum((payload->>'tokens')::bigint), 0) FROM session_events"
    " WHERE tenant_id = %s AND session_id = %s AND kind = ANY(%s)"
)
_MARK = (
    f"SELECT {_COLUMNS} FROM session_events WHERE tenant_id = %s AND session_id = %s"  # noqa: S608
    " AND kind = ANY(%s) AND kind IN ('compaction_applied', 'context_frozen', 'prompt_refreshed')"
    " ORDER BY seq DESC LIMIT 1"
)
_SUMMARY = (
    f"SELECT {_COLUMNS} FROM session_events WHERE tenant_id = %s AND session_id = %s"  # noqa: S608
    " AND kind = 'compaction_applied' AND kind IN ('compaction_applied', 'context_frozen', 'prompt_refreshed')"
    " AND payload ->> 'method' = 'model' ORDER BY seq DESC LIMIT 1"
)
_NEWEST_COMPACTION = (
    "SELECT seq FROM session_events WHERE tenant_id = %s AND session_id = %s AND kind = 'compaction_applied'"
    " AND kind IN ('compaction_applied', 'context_frozen', 'prompt_refreshed') AND seq < %s"
    " ORDER BY seq DESC LIMIT 1"
)
_PROMPTS = (
    f"SELECT {_COLUMNS} FROM session_events WHERE tenant_id = %s AND session_id = %s"  # noqa: S608
    " AND kind IN ('context_frozen', 'prompt_refreshed')"
    " AND kind IN ('compaction_applied', 'context_frozen', 'prompt_refreshed') ORDER BY seq DESC LIMIT %s"
)
_MARKS = (
    "SELECT seq, kind, turn FROM session_events WHERE tenant_id = %s AND session_id = %s"
    " AND seq >= %s AND seq <= %s ORDER BY seq"
)
_END = 2**62


def load(session: UUID, *, after: int = 0, through: int | None = None) -> list[Event]:
    """The session's events with `after` < seq <= `through`, opened, in order; prompts with their texts.

    An event that was damaged comes back marked unreadable; a key that cannot be had is CannotOpen, never an
    empty history. A session of somebody else has no events.
    """
    return _with_texts(_open(_select(_LOAD, session, after, _END if through is None else through)))


def load_kinds(session: UUID, wanted: Iterable[str], *, after: int, limit: int) -> list[Event]:
    """The next `limit` events of those kinds with seq > `after`, opened, in order; prompts without their texts.

    A damaged event and a missing key are as for `load`.
    """
    return _open(_select(_OF_KINDS, session, after, list(wanted), limit))


def tokens_of(session: UUID, wanted: Iterable[str]) -> int:
    """The tokens that the session's events of those kinds were counted with."""
    with connection.cursor() as cursor:
        cursor.execute(_TOKENS, [current_tenant_id(), session, list(wanted)])
        return int(cursor.fetchone()[0])


def load_live(session: UUID) -> list[Event]:
    """What the model's context is made of: from the newest compaction on, and the newest prompt.

    Costs what the live part costs, whatever the age of the session.
    """
    compaction = _open(_select(_MARK, session, [kinds.COMPACTION_APPLIED]))
    start = int(compaction[0].payload.get("replaces_through_seq", 0)) if compaction else 0
    events = _open(_select(_LOAD, session, start, _END))
    if start and not any(event.kind in kinds.PROMPT_KINDS for event in events):
        events = _open(_select(_MARK, session, list(kinds.PROMPT_KINDS))) + events
    return _with_texts(events)


def load_prompts(session: UUID, *, newest: int) -> list[Event]:
    """The newest prompts the session has had, with their texts, in order; [] before the first message."""
    return _with_texts(_open(_select(_PROMPTS, session, newest))[::-1])


def marks(session: UUID, first: int, last: int) -> list[Mark]:
    """The events from number `first` to `last`, both inclusive, without their contents: to see where to cut."""
    return [Mark(*row) for row in _select(_MARKS, session, first, last)]


def newest_summary(session: UUID) -> Event | None:
    """The newest compaction whose summary a model wrote; None when there is none, or it cannot be opened."""
    found = _open(_select(_SUMMARY, session))
    return found[0] if found and kinds.readable(found[0]) else None


def _select(sql: str, session: UUID, *params: Any) -> Sequence[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [current_tenant_id(), session, *params])
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _open(rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    opener, aad = _key().opener, _aad()
    return [
        Event(
            seq,
            id_,
            kind,
            turn,
            attempt,
            kinds.read_json(payload),
            _content(opener, sealed, aad + id_.bytes),
            at,
        )
        for seq, id_, kind, turn, attempt, payload, sealed, at in rows
    ]


def _content(opener: cipher.Opener, sealed: bytes, aad: bytes) -> Any:
    try:
        return kinds.decode(opener.open(bytes(sealed), aad))
    except (Damaged, kinds.Undecodable):
        event = UUID(bytes=aad[-16:])
        logger.error("an event cannot be opened", extra={"event": str(event)})
        damage.note(TABLE, COLUMN, event)
        return kinds.UNREADABLE


def _with_texts(events: list[Event]) -> list[Event]:
    """Fill the texts of prompts and recalls into their events; a removed part says that it was removed."""
    wanted = [
        (section["name"], section["digest"])
        for event in events
        for section in event.payload.get("sections", ())
    ]
    if not wanted:
        return events
    parts = dict(zip(wanted, brain.prompt_parts(wanted), strict=True))
    return [_filled(event, parts) if event.payload.get("sections") else event for event in events]


def _filled(event: Event, parts: dict[tuple[str, str], Any]) -> Event:
    chosen = [parts[section["name"], section["digest"]] for section in event.payload["sections"]]
    names = list(dict.fromkeys(part.name for part in chosen))
    filled = [{"name": name, "text": text} for name, text in zip(names, assemble(chosen), strict=True)]
    content = {**event.content, "sections": filled}
    return Event(event.seq, event.id, event.kind, event.turn, event.attempt, event.payload, content, event.at)


def open_contents(events: Iterable[tuple[bytes, bytes]]) -> Iterator[Mapping[str, Any]]:
    """The content of each event of the scope's customer, given as (id, sealed), one at a time.

    A damaged one is `events.UNREADABLE`; a key that cannot be had is CannotOpen.
    """
    opener, aad = _key().opener, _aad()
    for event, sealed in events:
        yield _content(opener, sealed, aad + event)


def by_client_key(client_key: str) -> tuple[UUID, Event] | None:
    """(session, event) of the customer's message with that key, wherever it landed."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT session_id, {_COLUMNS} FROM session_events"  # noqa: S608
            " WHERE tenant_id = %s AND customer_id = %s AND client_key = %s",
            [current_tenant_id(), current_customer_id(), client_key],
        )
        row = cursor.fetchone()
    return (row[0], _open([row[1:]])[0]) if row else None


def answered(session: UUID, turn: UUID) -> bool:
    """Whether the turn has its answer. Looks at the newest events only: it is the session's last turn."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind FROM session_events WHERE tenant_id = %s AND session_id = %s AND turn = %s"
            " ORDER BY seq DESC LIMIT 1",
            [current_tenant_id(), session, turn],
        )
        row = cursor.fetchone()
    return row is not None and row[0] == kinds.ASSISTANT_TURN
