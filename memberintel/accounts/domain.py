"""What is known of a customer as a person: plain values."""

from __future__ import annotations

from dataclasses import dataclass
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


def time_zones() -> list[str]:
    """Names of the time zones a person can live in, sorted."""
    towns = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ["UTC", *sorted(towns)]
