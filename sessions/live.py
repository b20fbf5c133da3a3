"""What a running turn says, kept in the memory of the process that runs it, for whoever follows.

A follower may come late, leave and come back: it names the last id it saw and gets what came after. A feed
stays for ten minutes after its turn has ended. A process that does not run the turn follows the log instead
(`sessions.follow`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from memberintel.lib import sse

KEEP_SECONDS: Final = 600
PUBLISH_SECONDS: Final = 0.1
INTERRUPTED: Final = {
    "code": "interrupted",
    "message": "This answer was interrupted. What was written so far is kept; you can ask again.",
    "retryable": True,
}
"""The end of an attempt whose process is gone or has lost it, as whoever follows is told."""


@dataclass(frozen=True, slots=True)
class Said:
    """One event of a feed: `number` counts from 1, `body` is its data as one line of JSON, as it goes to everybody."""

    number: int
    name: str
    body: str

    @property
    def data(self) -> dict[str, Any]:
        """The body, decoded."""
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded


@dataclass(slots=True)
class Feed:
    """The output of one attempt at a turn. All of it happens on one event loop."""

    turn: UUID
    attempt: int
    said: list[Said] = field(default_factory=list)
    ended: bool = False
    _waiting: dict[str, list[str]] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, name: str, piece: str) -> None:
        """Add to the running text or reasoning; pieces are put together for a tenth of a second."""
        if self._waiting and name not in self._waiting:
            self._flush()
        self._waiting.setdefault(name, []).append(piece)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PUBLISH_SECONDS, self._flush)

    def publish(self, name: str, /, **data: Any) -> None:
        """Add an event at once, after all that was written before it."""
        self._flush()
        self._add(name, data)

    def end(self) -> None:
        """Nothing more will come; the feed is forgotten later."""
        self._flush()
        self.ended = True
        self._wake()
        asyncio.get_running_loop().call_later(KEEP_SECONDS, _feeds.pop, (self.turn, self.attempt), None)

    async def follow(self, after: int = 0) -> AsyncIterator[Said]:
        """Everything after the event numbered `after`, then what comes, until the end."""
        while True:
            news = self._news
            for said in self.said[after:]:
                after = said.number
                yield said
            if self.ended and after >= len(self.said):
                return
            if news is self._news:
                await news.wait()

    def _add(self, name: str, data: dict[str, Any]) -> None:
        self.said.append(Said(len(self.said) + 1, name, sse.line(data)))
        self._wake()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        for name, pieces in waiting.items():
            self._add(name, {"text": "".join(pieces)})

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


_feeds: dict[tuple[UUID, int], Feed] = {}
_leaving = False
_told_when_leaving: set[asyncio.Future[None]] = set()


def open_feed(turn: UUID, attempt: int) -> Feed:
    """A new feed for an attempt that starts now."""
    feed = _feeds[turn, attempt] = Feed(turn, attempt)
    return feed


def feed_of(turn: UUID, attempt: int) -> Feed | None:
    """The feed of the attempt, if it runs or ran lately in this process."""
    return _feeds.get((turn, attempt))


def forget(attempts: Iterable[tuple[UUID, int]]) -> None:
    """Drop the feeds of attempts whose session was erased; other processes keep theirs for ten minutes at most."""
    for attempt in attempts:
        _feeds.pop(attempt, None)


def leave() -> None:
    """This process is about to go: followers are to connect again elsewhere. On the event loop's thread."""
    global _leaving
    _leaving = True
    for told in _told_when_leaving:
        if not told.done():
            told.set_result(None)


async def until_leaving() -> None:
    """Returns when this process is about to go."""
    if _leaving:
        return
    told = asyncio.get_running_loop().create_future()
    _told_when_leaving.add(told)
    try:
        await told
    finally:
        _told_when_leaving.discard(told)
