"""What is known of a customer as a person: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

LANGUAGES = (
    ("en", "English"),
    ("de", "Deutsch"),
    ("es", "Español"),
    ("fr", "Français"),
    ("it", "Italiano"),
    ("nl", "Nederlands"),
    ("pt", "Português"),
)


@dataclass(frozen=True)
class Person:
    """Display name ("" when not given), time zone and language of a customer."""

    display_name: str = ""
    time_zone: str = "UTC"
    language: str = "en"

    @property
    def zone(self) -> ZoneInfo:
        """The time zone as an object; UTC when its name is no longer known."""
        return ZoneInfo(self.time_zone if self.time_zone in time_zones() else "UTC")


@dataclass(frozen=True)
class Token:
    """A personal token of the API, without what makes it work. `prefix` is how it begins."""

    id: UUID
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@cache  # what there is, is found by walking through folders
def time_zones() -> tuple[str, ...]:
    """Names of the time zones a person can live in, sorted."""
    towns = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ("UTC", *sorted(towns))
