"""Open items outlive their session: which are still open, which have rested for too long, what a later one settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import regex

PARKED_AFTER = timedelta(days=90)
CARRIED = 10  # injected beyond the last wrap-ups, the newest
SHOWN_TO_WRITER = 30

Status = Literal["open", "resolved", "parked"]
STATUSES: tuple[Status, ...] = ("open", "resolved", "parked")


@dataclass(frozen=True)
class Mark:
    """The newest mark of an item. `session` and `seq` say by which message, None when the customer made it."""

    state: str
    at: datetime
    session: UUID | None = None
    seq: int | None = None


@dataclass(frozen=True)
class OpenItem:
    """An open item of an earlier wrap-up, with what became of it since. `since` is when it was last written down, by
    a person if the wrap-up is `edited`."""

    id: UUID
    wrap_up: UUID
    session: UUID
    session_started_at: datetime
    session_last_activity_at: datetime
    since: datetime
    edited: bool
    mark: Mark | None

    @property
    def status(self) -> Status:
        """Where it stands."""
        return status(self.mark)

    @property
    def touched_at(self) -> datetime:
        """When it was last spoken of, edited or put back."""
        if self.mark is not None and self.mark.state in ("reopened", "touched"):
            return max(self.mark.at, self.since)
        return self.since


@dataclass(frozen=True)
class Earlier:
    """An open item of an earlier session as the writer of the next notes is shown it, under a short id."""

    short: str
    text: str
    day: str


def status(mark: Mark | None) -> Status:
    """Where an item with this newest mark stands. What was asked about and left is parked."""
    if mark is None or mark.state in ("reopened", "touched"):
        return "open"
    return "resolved" if mark.state == "resolved" else "parked"


def rested(item: OpenItem, now: datetime) -> bool:
    """Whether nobody has touched the open item for so long that it is asked about once."""
    return item.status == "open" and now - item.touched_at >= PARKED_AFTER


def asked_in(item: OpenItem, session: UUID) -> bool:
    """Whether it was in that very session that the item was asked about."""
    return item.mark is not None and item.mark.state == "asked" and item.mark.session == session


def short_ids(items: Iterable[UUID]) -> dict[str, UUID]:
    """Short names for items, in their order: a model copies them more surely than ids."""
    return {f"o{number}": item for number, item in enumerate(items, start=1)}


def restated(text: str, earlier: Sequence[Earlier]) -> str | None:
    """The short id of the earlier item that says the same, word for word; similar ones are not the same."""
    words = _words(text)
    return next((each.short for each in earlier if words and _words(each.text) == words), None)


def by_wrap_up(items: Iterable[OpenItem]) -> Mapping[UUID, list[OpenItem]]:
    """The items of each wrap-up, in their order."""
    found: dict[UUID, list[OpenItem]] = {}
    for item in items:
        found.setdefault(item.wrap_up, []).append(item)
    return found


def _words(text: str) -> list[str]:
    return regex.findall(r"[\p{L}\p{M}\p{N}]+", text.casefold())
