"""What the list of wrap-ups is narrowed to: words, days, what is open, or another state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import BadRequest
from django.utils import timezone

from memberintel.lib.text import clean

CHOICES = (
    ("", "With notes"),
    ("queued", "Being written"),
    ("failed", "Not written yet"),
    ("unfunded", "Without a budget"),
    ("trivial", "Too short for notes"),
    ("off_record", "Off the record"),
    ("deleted", "Deleted by you"),
    ("expired", "Expired"),
)


@dataclass(frozen=True)
class Wanted:
    """The filters as they were given; days are the customer's own."""

    q: str = ""
    since: str = ""
    until: str = ""
    open: bool = False
    state: str = ""

    @property
    def narrows(self) -> bool:
        """Whether anything is left out."""
        return self != Wanted()

    def of_wrap_ups(self) -> dict[str, Any]:
        """As `queries.list_wrap_ups` takes them; `until` is the day itself included."""
        return {
            "q": self.q,
            "since": _begin(self.since),
            "until": _begin(self.until, timedelta(days=1)),
            "open_items": self.open,
        }

    def address(self, cursor: str = "") -> str:
        """The parameters of the address, with those of a cursor."""
        given = {"q": self.q, "since": self.since, "until": self.until, "state": self.state}
        kept = {name: value for name, value in given.items() if value}
        if self.open:
            kept["open"] = "1"
        return "&".join(part for part in (urlencode(kept), cursor) if part)


def read(given: Mapping[str, str]) -> Wanted:
    """The filters of an address; BadRequest for a day that is none and a state there is not."""
    wanted = Wanted(
        q=clean(given.get("q", ""))[:500].strip(),
        since=given.get("since", ""),
        until=given.get("until", ""),
        open=given.get("open") == "1",
        state=given.get("state", ""),
    )
    if wanted.state not in dict(CHOICES):
        raise BadRequest("there is no such state")
    _begin(wanted.since)
    _begin(wanted.until)
    return wanted


def _begin(day: str, plus: timedelta = timedelta()) -> datetime | None:
    """The beginning of the day in the customer's time zone."""
    if not day:
        return None
    try:
        found = date.fromisoformat(day) + plus
        return datetime.combine(found, time(), timezone.get_current_timezone())
    except (ValueError, OverflowError):
        raise BadRequest("a day is given as 2026-07-21") from None
