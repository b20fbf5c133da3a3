"""Lines and bars for a plot of days, as plain numbers that a template draws as SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from brain.domain.heartbeat.metrics import FLOWS, LABELS, Day, currencies, in_major, money
from brain.domain.prompt import day_in_words

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 200, 64, 12, 12, 28
GAP: Final = 3  # days without a number before a line breaks


@dataclass(frozen=True)
class Point:
    """A day on the plot, and what it says when pointed at."""

    x: float
    y: float
    height: float
    says: str


@dataclass(frozen=True)
class Mark:
    """A label on an axis."""

    at: float
    says: str


@dataclass(frozen=True)
class Plot:
    """One metric: a stock as lines (SVG points), a flow as bars. `summary` says in words what is drawn."""

    name: str
    title: str
    summary: str
    lines: tuple[str, ...]
    points: tuple[Point, ...]
    bars: bool
    wide: float
    days: tuple[Mark, ...]
    levels: tuple[Mark, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


@dataclass(frozen=True)
class Series:
    """A metric's known values by day, with the currency of amounts."""

    name: str
    values: tuple[tuple[date, int], ...]
    currency: str = ""

    @property
    def title(self) -> str:
        """What it is, in words."""
        return f"{LABELS[self.name]} in {self.currency}" if self.currency else LABELS[self.name]

    def words(self, value: int) -> str:
        """A value as people read it."""
        return money(value, self.currency) if self.currency else f"{value:,}"


def series(days: Sequence[Day], names: Sequence[str]) -> list[Series]:
    """The metrics of these names that have a value, MRR once for each currency."""
    found: list[Series] = []
    for name in names:
        if name == "mrr":
            for code in currencies(days):
                values = [(each.day, each.numbers.mrr.get(code, 0)) for each in days if each.numbers.mrr]
                found.append(Series(name, tuple(values), code))
            continue
        counted = [(each.day, each.numbers.counts[name]) for each in days if name in each.numbers.counts]
        if counted:
            found.append(Series(name, tuple(counted)))
    return found


def plot(given: Series, first: date, last: date) -> Plot | None:
    """The plot of a metric from `first` to `last`; None when no day of that time is known."""
    values = [(day, value) for day, value in given.values if first <= day <= last]
    if not values:
        return None
    bars = given.name in FLOWS
    low, high = _range([value for _, value in values], bars)
    wide = (WIDTH - LEFT - RIGHT) / ((last - first).days + 1)

    def x(day: date) -> float:
        return round(LEFT + ((day - first).days + 0.5) * wide, 1)

    def y(value: int) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low)), 1)

    points = tuple(
        Point(
            round(x(day) - 0.35 * wide, 1) if bars else x(day),
            y(value),
            round(HEIGHT - BOTTOM - y(value), 1),
            f"{day_in_words(day)}: {given.words(value)}",
        )
        for day, value in values
    )
    every = max(1, ((last - first).days + 1) // 5)
    marks = [date.fromordinal(first.toordinal() + each) for each in range(0, (last - first).days + 1, every)]
    return Plot(
        given.name,
        given.title,
        _summary(given, values),
        () if bars else _lines([(day, x(day), y(value)) for day, value in values]),
        points,
        bars,
        round(wide * 0.7, 1),
        tuple(Mark(x(day), f"{day.day} {day_in_words(day).split()[1][:3]}") for day in marks[:5]),
        tuple(Mark(y(level), _short(level, given.currency)) for level in (low, (low + high) // 2, high)),
    )


def _summary(given: Series, values: Sequence[tuple[date, int]]) -> str:
    (first, began), (last, ended) = values[0], values[-1]
    if given.name in FLOWS:
        total = given.words(sum(value for _, value in values))
        return f"{given.title} a day from {day_in_words(first)} to {day_in_words(last)}: {total} in all."
    begins, ends = given.words(began), given.words(ended)
    return f"{given.title}: {begins} on {day_in_words(first)}, {ends} on {day_in_words(last)}."


def _range(values: Sequence[int], from_zero: bool) -> tuple[int, int]:
    """A range with room around it, from 0 for bars, and for lines where that hides nothing; in even numbers."""
    low, high = min(values), max(values)
    low = 0 if from_zero or low <= (high - low) * 2 else low - (high - low) // 4 - 1
    step = _step(max(high - low, 1))
    low = low // step * step
    high = -(-max(high, low + 1) // step) * step
    return low, high + (high - low) % 2


def _step(span: int) -> int:
    """1, 2, 5, 10, ... so that about five of it cover the span."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if span <= 5 * factor * step:
                return factor * step
        step *= 10


def _lines(places: Sequence[tuple[date, float, float]]) -> tuple[str, ...]:
    """Where a number is missing for longer than GAP days, the line is broken and not drawn across."""
    runs: list[list[str]] = []
    before: date | None = None
    for day, x, y in places:
        if before is None or (day - before).days > GAP:
            runs.append([])
        runs[-1].append(f"{x},{y}")
        before = day
    return tuple(" ".join(run) for run in runs if len(run) > 1)


def _short(value: int, currency: str) -> str:
    if not currency:
        return f"{value:,}"
    amount = in_major(value, currency)
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if amount >= 10 * size:
            return f"{(amount / size).quantize(Decimal('0.1')):,}".removesuffix(".0") + letter
    return f"{amount:,.0f}"
