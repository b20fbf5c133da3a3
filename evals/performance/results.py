"""A measured figure with its target, and how a set of them is shown and kept."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

LATEST = Path(__file__).parent / "latest.json"


@dataclass(frozen=True)
class Figure:
    """One row: `value` in `unit`; `met` is None where there is no target."""

    work: str
    value: float
    unit: str
    target: str
    met: bool | None


def at_most(work: str, value: float, limit: float, unit: str) -> Figure:
    """A figure that is good when it is small."""
    return Figure(work, round(value, 3), unit, f"<= {limit:g} {unit}", value <= limit)


def at_least(work: str, value: float, limit: float, unit: str) -> Figure:
    """A figure that is good when it is large."""
    return Figure(work, round(value, 3), unit, f">= {limit:g} {unit}", value >= limit)


def plain(work: str, value: float, unit: str) -> Figure:
    """A figure without a target, such as a floor."""
    return Figure(work, round(value, 3), unit, "", None)


def alternate(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median milliseconds of each, run in turns so that both meet the same machine."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, taken in zip((first, second), times, strict=True):
            begun = time.perf_counter()
            work()
            taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times[0]), statistics.median(times[1])


def show(figures: Sequence[Figure]) -> None:
    """Print the table and write `latest.json`."""
    table = Table("work", "value", "target", "met", title="make bench")
    for figure in figures:
        met = {True: "yes", False: "[red]no[/red]", None: ""}[figure.met]
        table.add_row(figure.work, f"{figure.value:g} {figure.unit}", figure.target, met)
    Console(width=140).print(table)
    LATEST.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")
