"""What every source of numbers does, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from brain.domain.heartbeat.metrics import Day, Numbers


class Failed(Exception):
    """The source gave nothing. `code` is kept with it; `again` says whether a later try makes sense by itself."""

    def __init__(self, code: str, message: str, *, again: bool = True) -> None:
        super().__init__(message)
        self.code, self.message, self.again = code, message, again


@dataclass(frozen=True)
class Window:
    """Which days to ask for: from `first` to `last`, both whole days of the site's zone that are over."""

    first: date
    last: date
    zone: ZoneInfo
    now: datetime

    @property
    def began(self) -> datetime:
        """When the first day began."""
        return datetime.combine(self.first, time(), self.zone)

    @property
    def ended(self) -> datetime:
        """When the last day was over. A day may have 23 or 25 hours."""
        return datetime.combine(self.last + timedelta(days=1), time(), self.zone)

    @property
    def days(self) -> list[date]:
        """All of them."""
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    def day_of(self, seconds: float | None) -> date | None:
        """The day of a moment (seconds since 1970) if it is one of these."""
        if seconds is None:
            return None
        day = datetime.fromtimestamp(seconds, self.zone).date()
        return day if self.first <= day <= self.last else None


@dataclass
class Tally:
    """Counts of what happened on each day of a window, with zeros for days without."""

    window: Window
    names: Sequence[str]
    counts: dict[date, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = {day: dict.fromkeys(self.names, 0) for day in self.window.days}

    def add(self, name: str, day: date | None) -> None:
        """One more, if that day is among them."""
        if day is not None:
            self.counts[day][name] += 1

    def fetched(self, stocks: Mapping[str, int], mrr: Mapping[str, int]) -> Fetched:
        """The days, the last of them with what stands at its end."""
        days = [Day(day, Numbers(counts)) for day, counts in self.counts.items()]
        last = days[-1].numbers
        days[-1] = Day(self.window.last, Numbers({**last.counts, **stocks}, mrr))
        return Fetched(tuple(days))


@dataclass(frozen=True)
class Fetched:
    """What a source gave."""

    days: tuple[Day, ...]


class Fetcher(Protocol):
    """A source that is asked. Both may take minutes, and hold no connection to our database meanwhile."""

    def check(self) -> None:
        """Whether it can be read with these credentials; Failed says why not, to the person who gave them."""

    def fetch(self, window: Window) -> Fetched:
        """The numbers of the window; Failed when it could not be read to the end: there is no half of it."""
