"""Mood and energy over some days, as plain numbers that a template draws as SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from wrapups.domain.journal import ENERGIES, MOOD_WORDS, MOODS, Day

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 220, 100, 14, 14, 32


@dataclass(frozen=True)
class Dot:
    """A day: where its mood stands, its energy as 1 to 3, and what it says."""

    x: float
    y: float
    energy: int
    day: date
    says: str


@dataclass(frozen=True)
class Mark:
    """A label on an axis."""

    at: float
    says: str


@dataclass(frozen=True)
class Plot:
    """Days with a mood as dots, the higher the better, the larger the livelier. Without dots nothing is drawn."""

    dots: tuple[Dot, ...]
    line: str
    levels: tuple[Mark, ...]
    days: tuple[Mark, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


def plot(days: Sequence[Day]) -> Plot:
    """The days in order. Of a day with several sessions the mean is drawn, and its words name each."""
    wide = (WIDTH - LEFT - RIGHT) / max(len(days), 1)
    dots = tuple(_dot(day, LEFT + (place + 0.5) * wide) for place, day in enumerate(days) if day.feelings)
    every = max(1, len(days) // 5)
    return Plot(
        dots=dots,
        line=" ".join(f"{dot.x},{dot.y}" for dot in dots),
        levels=tuple(Mark(_height(level), MOOD_WORDS[mood]) for level, mood in enumerate(MOODS)),
        days=tuple(
            Mark(round(LEFT + (place + 0.5) * wide, 1), f"{day.day.day} {day.day:%b}")
            for place, day in enumerate(days)
            if place % every == 0
        ),
    )


def _dot(day: Day, x: float) -> Dot:
    moods = [MOODS.index(feeling.mood) for feeling in day.feelings]
    energies = [ENERGIES.index(feeling.energy) + 1 for feeling in day.feelings]
    each = ", ".join(f"{MOOD_WORDS[one.mood]} (energy {one.energy})" for one in day.feelings)
    return Dot(
        x=round(x, 1),
        y=_height(sum(moods) / len(moods)),
        energy=round(sum(energies) / len(energies)),
        day=day.day,
        says=each,
    )


def _height(level: float) -> float:
    high = HEIGHT - TOP - BOTTOM
    return round(TOP + high * (1 - level / (len(MOODS) - 1)), 1)
