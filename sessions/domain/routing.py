"""Where a message goes, decided from a snapshot; carrying it out is the caller's, under the locks it needs.

A customer has one open session at most. A message belongs to it while less than the idle time has passed
since the customer's last message; at exactly that time, or later, the session is over, whether or not a
sweep has been there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

TargetState = Literal["open", "closed", "archived", "erased", "off_record"]
Reason = Literal["idle", "ended"]

OPEN_SESSION_TEXT: Final = "A conversation is still open. End it first, or send your message there."
ARCHIVED_TEXT: Final = (
    "This conversation is archived. Take it out of the archive, or send your message in a new conversation."
)
ERASED_TEXT: Final = "This conversation was deleted. Send your message in a new conversation."
OFF_RECORD_TEXT: Final = (
    "That conversation was off the record and is over: nothing of it is kept, so it cannot go on. Begin a new one, on"
    " the record or off it, and send your message there."
)


@dataclass(frozen=True, slots=True)
class Open:
    """The customer's open session; `ended_at` is the time of their last message in it."""

    id: UUID
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Target:
    """The session a message was addressed to."""

    id: UUID
    state: TargetState


@dataclass(frozen=True, slots=True)
class Append:
    """Add the message to this open session."""

    session: UUID


@dataclass(frozen=True, slots=True)
class CloseAndSucceed:
    """Close `close` for `reason`, then open a new session that follows `continues`."""

    close: UUID
    reason: Reason
    continues: UUID | None


@dataclass(frozen=True, slots=True)
class OpenSuccessor:
    """Open a new session that follows `continues` (None: it follows nothing)."""

    continues: UUID | None


@dataclass(frozen=True, slots=True)
class GoToOpen:
    """The addressed session is over and another is open: add the message there, and say so (`told`)."""

    session: UUID
    told: bool = True


@dataclass(frozen=True, slots=True)
class Conflict:
    """Refuse: `code` for programs, `text` for a person, `session` the one in the way, if any."""

    code: str
    text: str
    session: UUID | None = None


Route = Append | CloseAndSucceed | OpenSuccessor | GoToOpen | Conflict


def is_idle(ended_at: datetime, *, now: datetime, idle_seconds: int) -> bool:
    """Whether the silence since `ended_at` has reached the idle time. A clock gone back is no silence."""
    return (now - ended_at).total_seconds() >= idle_seconds


def route_message(
    target: Target | None,
    *,
    open_session: Open | None,
    now: datetime,
    idle_seconds: int,
    close_previous: bool = False,
    lapsed: UUID | None = None,
) -> Route:
    """Where a message goes that was sent to `target` (None: to no session in particular).

    `lapsed` is the customer's last session where silence has ended it already: what would have followed it before the
    sweep follows it after.
    """
    if target is not None and target.state in _REFUSED:
        return _refused(target)
    if open_session is None:
        return OpenSuccessor(continues=target.id if target else lapsed)
    at_open = target is None or target.id == open_session.id
    continues = open_session.id if target is None else target.id
    if is_idle(open_session.ended_at, now=now, idle_seconds=idle_seconds):
        return CloseAndSucceed(open_session.id, reason="idle", continues=continues)
    if at_open:
        return Append(open_session.id)
    if close_previous:
        return CloseAndSucceed(open_session.id, reason="ended", continues=continues)
    return GoToOpen(open_session.id)


def route_opening(
    *, open_session: Open | None, now: datetime, idle_seconds: int, close_previous: bool = False
) -> Route:
    """What happens when the customer opens a session by hand."""
    if open_session is None:
        return OpenSuccessor(continues=None)
    if is_idle(open_session.ended_at, now=now, idle_seconds=idle_seconds):
        return CloseAndSucceed(open_session.id, reason="idle", continues=None)
    if close_previous:
        return CloseAndSucceed(open_session.id, reason="ended", continues=None)
    return Conflict("session_open", OPEN_SESSION_TEXT, open_session.id)


_REFUSED: Final[dict[TargetState, tuple[str, str]]] = {
    "archived": ("session_archived", ARCHIVED_TEXT),
    "erased": ("session_erased", ERASED_TEXT),
    "off_record": ("session_off_record", OFF_RECORD_TEXT),
}


def _refused(target: Target) -> Conflict:
    code, text = _REFUSED[target.state]
    return Conflict(code, text, target.id)
