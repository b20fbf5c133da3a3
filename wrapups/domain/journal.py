"""What may stand in a journal, and how its entries make days. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import regex
from pydantic import BaseModel, ConfigDict, Field

from memberintel.lib.extract import sentences
from memberintel.lib.sanitise import kept
from memberintel.lib.text import count_words, shorten_words, visible

CAP_WORDS = 200
SHORT_WORDS = 60
"""Somebody who wrote less than this gets two sentences."""
THEMES = 5
_CHARACTERS = {"blob": 6_000, "reason": 300, "theme": 40}

Mood = Literal["very_low", "low", "neutral", "good", "great"]
Energy = Literal["low", "medium", "high"]
MOODS: tuple[Mood, ...] = ("very_low", "low", "neutral", "good", "great")
ENERGIES: tuple[Energy, ...] = ("low", "medium", "high")
MOOD_WORDS = dict(zip(MOODS, ("very low", "low", "neutral", "good", "great"), strict=True))

# Whoever tells of their day does not mention what they typed it into.
_ASSISTANT = regex.compile(
    r"\b(?:assistant|advisor|chat ?bot|memberintel|language model|the ai|an ai|ai (?:tool|model))\b",
    regex.IGNORECASE,
)
_LEADING = regex.compile(r"^\s*(?:#{1,6}\s+|[-*•‣–]\s+|\d{1,2}[.)]\s+|>\s+)", regex.MULTILINE)
_HEADING = regex.compile(r"^\s*#{1,6}\s.*$", regex.MULTILINE)
_TIME = regex.compile(
    r"\[\d{1,2}:\d{2}\]\s*|^\s*\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?\s*[-–:]\s*",
    regex.MULTILINE | regex.IGNORECASE,
)
_DASH = regex.compile(r"\s*[—―]\s*|\s+--\s+")
_EMPHASIS = regex.compile(r"\*{1,3}|_{2,3}|`+")


class MoodOutput(BaseModel):
    """How somebody felt, from what they wrote."""

    model_config = ConfigDict(extra="ignore")
    mood: Mood = Field(description="How they felt over the whole of it.")
    energy: Energy = Field(description="How much energy speaks from it.")
    reason: str = Field(description="One sentence: what the mood came from, in their own terms.")
    themes: list[str] = Field(description="Up to five themes, each of one to three words.")


@dataclass(frozen=True)
class Feeling:
    """Mood, energy, the reason for the mood ("" when none can be told), themes."""

    mood: Mood
    energy: Energy
    reason: str
    themes: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A closed session in the journal. What is not there is None; what cannot be opened has `readable` false."""

    session: UUID
    started_at: datetime
    ended_at: datetime
    blob: str | None = None
    feeling: Feeling | None = None
    edited_at: datetime | None = None
    readable: bool = True


@dataclass(frozen=True)
class Day:
    """A day in the customer's time zone and what was said on it, in order; its moods and themes together."""

    day: date
    entries: tuple[Entry, ...] = ()

    @property
    def feelings(self) -> tuple[Feeling, ...]:
        """Those of its entries that have one, in order."""
        return tuple(entry.feeling for entry in self.entries if entry.feeling)

    @property
    def themes(self) -> tuple[str, ...]:
        """Each theme of the day once, in order."""
        every = (theme for feeling in self.feelings for theme in feeling.themes)
        return tuple({theme.casefold(): theme for theme in reversed(list(every))}.values())[::-1]


def limit_words(written: int) -> int:
    """Most words of a blob for somebody who wrote so many: never more than they wrote, never over 200."""
    return min(CAP_WORDS, written)


def blob(answer: str, *, written: int) -> str:
    """A model's answer as it may stand in the journal, "" when nothing of it may.

    Plain prose without headings, bullets, times, em-dashes, and sentences that mention an assistant; two sentences
    for somebody who wrote little, and in no case more words than they wrote themselves (`written`).
    """
    said = kept(_plain(answer), limit=_CHARACTERS["blob"])
    told = [one for one in sentences(said) if not _ASSISTANT.search(one)]
    if written < SHORT_WORDS:
        told = told[:2]
    return _within(told, limit_words(written))


def feeling(output: MoodOutput) -> Feeling:
    """What a model found, cleaned. Themes that may not be kept go."""
    themes = (kept(" ".join(theme.split()), limit=_CHARACTERS["theme"]) for theme in output.themes[:20])
    return Feeling(
        output.mood,
        output.energy,
        kept(" ".join(_plain(output.reason).split()), limit=_CHARACTERS["reason"]),
        tuple(dict.fromkeys(theme for theme in themes if count_words(theme)))[:THEMES],
    )


def local_day(moment: datetime, zone: ZoneInfo) -> date:
    """The day on which it is that moment for somebody in that zone."""
    return moment.astimezone(zone).date()


def days(entries: Iterable[Entry], first: date, last: date, zone: ZoneInfo) -> list[Day]:
    """Every day from `first` to `last`, both included; an entry belongs to the local day its session started on."""
    by_day: dict[date, list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: (one.started_at, one.session)):
        by_day.setdefault(local_day(entry.started_at, zone), []).append(entry)
    count = (last - first).days + 1
    every = (first + timedelta(days=number) for number in range(count))
    return [Day(day, tuple(by_day.get(day, ()))) for day in every]


def bounds(first: date, last: date) -> tuple[datetime, datetime]:
    """Moments between which everything lies that anybody on earth did on these days. Wider than any zone's days:
    who reads by it picks by `local_day`, so that no change of clocks can lose a session."""
    margin = timedelta(days=1)
    return datetime.combine(first, time(), UTC) - margin, datetime.combine(last, time(), UTC) + 2 * margin


def time_range(entry: Entry, zone: ZoneInfo) -> str:
    """ "4:00 PM – 6:30 PM" in the customer's time; one time where both are the same."""
    first, last = (clock_time(moment, zone) for moment in (entry.started_at, entry.ended_at))
    return first if first == last else f"{first} – {last}"


def clock_time(moment: datetime, zone: ZoneInfo) -> str:
    """ "4:00 PM" in that zone."""
    local = moment.astimezone(zone)
    return f"{local.hour % 12 or 12}:{local.minute:02} {'AM' if local.hour < 12 else 'PM'}"


def _plain(text: str) -> str:
    text = _HEADING.sub("", visible(text))
    text = _TIME.sub("", _LEADING.sub("", text))
    text = _EMPHASIS.sub("", _DASH.sub(", ", text))
    return "\n\n".join(" ".join(part.split()) for part in regex.split(r"\n\s*\n", text) if part.strip())


def _within(told: Sequence[str], limit: int) -> str:
    chosen: list[str] = []
    words = 0
    for one in told:
        words += count_words(one)
        if words > limit:
            break
        chosen.append(one)
    if not chosen and told:
        return shorten_words(told[0], limit)
    return " ".join(chosen)
