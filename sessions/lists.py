"""What a person may choose of the list of sessions: which, and from which day to which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.utils import timezone

SHOWN: Final[dict[str, str]] = {"": "All", "open": "Open", "closed": "Closed", "archived": "Archived"}
EARLIEST: Final = date(1970, 1, 1)
LATEST: Final = date(2999, 12, 31)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A choice; `since` and `until` are days in the person's time zone, the second one included."""

    show: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def any(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.show or self.since or self.until)

    @property
    def tabs(self) -> list[tuple[str, str, bool]]:
        """(address, words, whether it is shown now) of each group, within the same days."""
        return [
            ("?" + Wanted(show, self.since, self.until).address(), words, show == self.show)
            for show, words in SHOWN.items()
        ]

    def filters(self) -> dict[str, Any]:
        """What it means for `queries.list_sessions`."""
        return {
            "open": {"open": True, "closed": False}.get(self.show),
            "archived": self.show == "archived",
            "since": _midnight(self.since) if self.since else None,
            "until": _midnight(self.until + timedelta(days=1)) if self.until else None,
        }

    def address(self, cursor: str = "") -> str:
        """The parameters that choose the same, behind `cursor`."""
        chosen = {"show": self.show, "since": self.since, "until": self.until}
        own = urlencode({name: value for name, value in chosen.items() if value})
        return "&".join(part for part in (own, cursor) if part)


def read(given: Mapping[str, str]) -> Wanted:
    """The choice in the parameters of an address; ValueError for a group or a day that is none."""
    show = given.get("show", "")
    if show not in SHOWN:
        raise ValueError("show is one of open, closed and archived")
    return Wanted(show, _day(given.get("since", "")), _day(given.get("until", "")))


def _day(given: str) -> date | None:
    if not given:
        return None
    day = date.fromisoformat(given)
    if not EARLIEST <= day <= LATEST:
        raise ValueError("this calendar has no such day")
    return day


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
