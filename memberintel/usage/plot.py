"""Bars for a plot of days, as plain numbers that a template draws as SVG. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memberintel.usage.spending import Sums, dollars

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 1000, 240, 60, 16, 26, 12
_GAP = 0.28  # of a day's width


@dataclass(frozen=True)
class Piece:
    """One rectangle, its colour as a number from 1, and what it says when pointed at."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    says: str


@dataclass(frozen=True)
class Mark:
    """A label on an axis."""

    at: float
    says: str


@dataclass(frozen=True)
class Plot:
    """A plot of days; `what` is what is drawn, in words. Without pieces there is nothing to draw."""

    what: str
    pieces: tuple[Piece, ...]
    days: tuple[Mark, ...]
    levels: tuple[Mark, ...]
    legend: tuple[tuple[int, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


def plot(sums: Sequence[Sums], first: date, last: date) -> Plot:
    """Cost a day, one colour for each purpose; calls where nothing was paid for."""
    paid = any(each.cost_micros for each in sums)
    purposes = _purposes(sums)
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    heights = {day: dict.fromkeys(purposes, 0) for day in days}
    for each in sums:
        if each.day in heights:
            heights[each.day][each.purpose] += each.cost_micros if paid else each.calls
    most = _round_up(max((sum(by.values()) for by in heights.values()), default=0))
    wide = (WIDTH - LEFT - RIGHT) / max(len(days), 1)
    high = HEIGHT - BOTTOM - TOP

    def words(number: float) -> str:
        return dollars(int(number)) if paid else f"{number:,.1f}".removesuffix(".0")

    pieces: list[Piece] = []
    for place, day in enumerate(days):
        base = float(HEIGHT - BOTTOM)
        for colour, name in enumerate(purposes, 1):
            tall = heights[day][name] / most * high if most else 0
            if tall:
                base -= tall
                says = f"{day:%-d %b}: {name} {words(heights[day][name])}"
                x = LEFT + (place + _GAP / 2) * wide
                pieces.append(Piece(_r(x), _r(base), _r(wide * (1 - _GAP)), _r(tall), colour, says))
    every = max(1, len(days) // 6)
    return Plot(
        what="Cost a day" if paid else "Calls a day (nothing was paid for them)",
        pieces=tuple(pieces),
        days=tuple(
            Mark(_r(LEFT + (place + 0.5) * wide), f"{day:%-d %b}")
            for place, day in enumerate(days)
            if place % every == 0
        ),
        levels=tuple(Mark(_r(TOP + high * (1 - part)), words(most * part)) for part in (0, 0.5, 1)),
        legend=tuple(enumerate(purposes, 1)),
    )


def _purposes(sums: Iterable[Sums]) -> list[str]:
    """The purposes that occur, in a fixed order, so that each keeps its colour from page to page."""
    order = ("chat", "wrap_up", "journal", "mood", "distill", "compact", "title", "judge", "embed")
    there = {each.purpose for each in sums}
    return [name for name in order if name in there] + sorted(there - set(order))


def _round_up(number: int) -> int:
    """The next number with a plain first digit: 1, 2, 5, 10, 20, ..."""
    step = 1
    while number > 0:
        for factor in (1, 2, 5):
            if number <= factor * step:
                return factor * step
        step *= 10
    return 0


def _r(number: float) -> float:
    return round(number, 1)
