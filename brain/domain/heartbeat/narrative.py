"""What the numbers of a site tell, in words: deterministic, in English, and nothing that was not counted.

`told` gives the text with every number it rests on, so that a test can hold the one against the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from brain.domain.heartbeat.metrics import (
    LABELS,
    SOURCE_NAMES,
    Day,
    SourceKind,
    currencies,
    money,
)
from brain.domain.prompt import day_in_words

MOST_CURRENCIES: Final = 3
WEEK, MONTH = 7, 30
NEAR: Final = 3  # days a value may be older than the day asked for, and still stand for it
SPIKE: Final = 2  # times the usual week, and at least this many more, before a week stands out
SPIKE_LEAST: Final = 3
FALL: Final = 5  # percent in 30 days from which a falling stock stands out
CONVERSION_LEAST: Final = 4  # trials that must have ended before their share says anything
CONVERSION_CHANGE: Final = 15  # points


@dataclass(frozen=True)
class Fact:
    """A number in the text: of what, as what (`value`, `change`, `percent`, `sum`), and over which days."""

    metric: str
    kind: str
    value: int
    day: date
    days: int = 0
    currency: str = ""


@dataclass(frozen=True)
class Line:
    """A sentence with its facts. `notable` when it stands out."""

    text: str
    facts: tuple[Fact, ...]
    notable: bool = False


@dataclass(frozen=True)
class Told:
    """What one source tells: as of which day, the lines in order."""

    source: SourceKind
    through: date
    lines: tuple[Line, ...]

    @property
    def notable(self) -> tuple[Line, ...]:
        """The lines that stand out."""
        return tuple(line for line in self.lines if line.notable)

    @property
    def text(self) -> str:
        """All of it as text, what stands out first."""
        plain = [line.text for line in self.lines if not line.notable]
        parts = [f"Through {day_in_words(self.through)}, from {SOURCE_NAMES[self.source]}."]
        if self.notable:
            parts.append("What stands out:\n" + "\n".join(f"- {line.text}" for line in self.notable))
        if plain:
            parts.append("The numbers:\n" + "\n".join(f"- {line}" for line in plain))
        return "\n\n".join(parts)


def told(source: SourceKind, days: Iterable[Day]) -> Told | None:
    """What the days of one source tell, as of the last of them; None without any."""
    held = _Held(sorted(days, key=lambda each: each.day))
    if not held.days:
        return None
    lines = [
        *_stock(held, "active_members"),
        *_mrr(held),
        *_flow(held, "new"),
        *_flow(held, "churned", spikes="More members left than usual"),
        *_flow(held, "failed_payments", spikes="More payments failed than usual"),
        *_stock(held, "trials"),
        *_conversion(held),
        *_aside(held, "paused", "paused and not in MRR"),
        *_aside(held, "unpriced", "left out of MRR: what they bring a month cannot be known beforehand"),
    ]
    return Told(source, held.through, tuple(lines))


class _Held:
    """The days by date, and what can be asked of them."""

    def __init__(self, days: Sequence[Day]) -> None:
        self.days = days
        self.through = days[-1].day if days else date.min
        self._by_day = {each.day: each.numbers for each in days}

    def stock(self, name: str, back: int = 0) -> tuple[date, int] | None:
        """The value so many days before the last, or up to NEAR days older."""
        for each in range(back, back + NEAR + 1):
            day = self.through - timedelta(days=each)
            found = self._by_day.get(day)
            if found is not None and name in found.counts:
                return day, found.counts[name]
        return None

    def mrr(self, currency: str, back: int = 0) -> tuple[date, int] | None:
        """As `stock`, of the MRR in one currency. On a day with amounts none of which is in it, it is 0."""
        for each in range(back, back + NEAR + 1):
            day = self.through - timedelta(days=each)
            found = self._by_day.get(day)
            if found is not None and found.mrr:
                return day, found.mrr.get(currency, 0)
        return None

    def flow(self, name: str, length: int, back: int = 0) -> int | None:
        """The sum over so many days, ending so many before the last; None unless every day is known."""
        total = 0
        for each in range(back, back + length):
            found = self._by_day.get(self.through - timedelta(days=each))
            if found is None or name not in found.counts:
                return None
            total += found.counts[name]
        return total


def _stock(held: _Held, name: str) -> list[Line]:
    now = held.stock(name)
    if now is None:
        return []
    day, value = now
    text = f"{LABELS[name]}: {value:,} on {day_in_words(day)}"
    facts = [Fact(name, "value", value, day)]
    fell = False
    for back, words in ((WEEK, "a week before"), (MONTH, "30 days before")):
        then = held.stock(name, back)
        if then is None or then[0] >= day:
            continue
        change, more = _change(name, day, value, then)
        text += f"; {words} {then[1]:,} ({change})"
        facts += [Fact(name, "value", then[1], then[0]), *more]
        fell = fell or (back == MONTH and then[1] > 0 and -100 * (value - then[1]) >= FALL * then[1])
    return [Line(text + ".", tuple(facts), notable=fell and name == "active_members")]


def _change(name: str, day: date, value: int, then: tuple[date, int]) -> tuple[str, list[Fact]]:
    difference, days = value - then[1], (day - then[0]).days
    facts = [Fact(name, "change", difference, day, days)]
    if not difference:
        return "no change", [Fact(name, "change", 0, day, days)]
    if not then[1]:
        return f"{difference:+,}", facts
    percent = _percent(difference, then[1])
    return f"{difference:+,}, {percent:+,} %", [*facts, Fact(name, "percent", percent, day, days)]


def _percent(part: int, whole: int) -> int:
    """Rounded half away from zero, in whole numbers: no float has a say in it."""
    sign = -1 if (part < 0) != (whole < 0) else 1
    return sign * ((200 * abs(part) + abs(whole)) // (2 * abs(whole)))


def _mrr(held: _Held) -> list[Line]:
    codes = currencies(held.days)
    lines = [line for code in codes[:MOST_CURRENCIES] for line in _mrr_in(held, code)]
    if len(codes) > MOST_CURRENCIES and lines:
        left = ", ".join(codes[MOST_CURRENCIES:][:10])
        lines.append(Line(f"There is MRR in further currencies too: {left}.", ()))
    if len(codes) > 1 and lines:
        lines.append(Line("MRR stands in each currency by itself; the amounts are not added together.", ()))
    return lines


def _mrr_in(held: _Held, code: str) -> list[Line]:
    now = held.mrr(code)
    if now is None:
        return []
    day, value = now
    text = f"MRR: {money(value, code)} on {day_in_words(day)}"
    facts = [Fact("mrr", "value", value, day, currency=code)]
    fell = False
    for back, words in ((WEEK, "a week before"), (MONTH, "30 days before")):
        then = held.mrr(code, back)
        if then is None or then[0] >= day:
            continue
        difference, days = value - then[1], (day - then[0]).days
        facts.append(Fact("mrr", "value", then[1], then[0], currency=code))
        facts.append(Fact("mrr", "change", difference, day, days, code))
        says = "no change" if not difference else _signed(difference, code)
        if difference and then[1]:
            percent = _percent(difference, then[1])
            facts.append(Fact("mrr", "percent", percent, day, days, code))
            says += f", {percent:+,} %"
        text += f"; {words} {money(then[1], code)} ({says})"
        fell = fell or (back == MONTH and then[1] > 0 and -100 * difference >= FALL * then[1])
    return [Line(text + ".", tuple(facts), notable=fell)]


def _signed(amount: int, code: str) -> str:
    return ("+" if amount > 0 else "-") + money(abs(amount), code)


def _flow(held: _Held, name: str, spikes: str = "") -> list[Line]:
    week = held.flow(name, WEEK)
    if week is None:
        return _today(held, name)
    text = f"{LABELS[name]}: {week:,} in the 7 days to {day_in_words(held.through)}"
    facts = [Fact(name, "sum", week, held.through, WEEK)]
    before = held.flow(name, WEEK, WEEK)
    if before is not None:
        text += f", {before:,} in the 7 before"
        facts.append(Fact(name, "sum", before, held.through - timedelta(days=WEEK), WEEK))
    month = held.flow(name, MONTH)
    if month is not None:
        text += f"; {month:,} in 30 days"
        facts.append(Fact(name, "sum", month, held.through, MONTH))
    lines = [Line(text + ".", tuple(facts))]
    return [*lines, *(_spike(held, name, week, spikes) if spikes else ())]


def _today(held: _Held, name: str) -> list[Line]:
    found = held.flow(name, 1)
    if found is None:
        return []
    text = f"{LABELS[name]}: {found:,} on {day_in_words(held.through)}; the days before are not all known."
    return [Line(text, (Fact(name, "sum", found, held.through, 1),))]


def _spike(held: _Held, name: str, week: int, words: str) -> list[Line]:
    """A week that is twice the usual one of the four before, and three more at the least."""
    four = held.flow(name, 4 * WEEK, WEEK)
    if four is None or 4 * week < SPIKE * four or 4 * (week - SPIKE_LEAST) < four:
        return []
    began = held.through - timedelta(days=WEEK)
    last = day_in_words(held.through)
    text = f"{words}: {week:,} in the 7 days to {last}, against {four:,} in the four weeks before."
    facts = (Fact(name, "sum", week, held.through, WEEK), Fact(name, "sum", four, began, 4 * WEEK))
    return [Line(text, facts, notable=True)]


def _conversion(held: _Held) -> list[Line]:
    ended, converted = held.flow("trials_ended", MONTH), held.flow("trials_converted", MONTH)
    if not ended or converted is None or converted > ended:
        return []
    share = _percent(converted, ended)
    text = f"Trials: of {ended:,} that ended in the 30 days to {day_in_words(held.through)},"
    text += f" {converted:,} became paying ({share} %)"
    facts = [
        Fact("trials_ended", "sum", ended, held.through, MONTH),
        Fact("trials_converted", "sum", converted, held.through, MONTH),
        Fact("trials_converted", "percent", share, held.through, MONTH),
    ]
    was, were = held.flow("trials_ended", MONTH, MONTH), held.flow("trials_converted", MONTH, MONTH)
    notable = False
    if was and were is not None and were <= was:
        earlier, until = _percent(were, was), held.through - timedelta(days=MONTH)
        text += f"; of {was:,} in the 30 days before, {were:,} ({earlier} %)"
        facts += [
            Fact("trials_ended", "sum", was, until, MONTH),
            Fact("trials_converted", "sum", were, until, MONTH),
            Fact("trials_converted", "percent", earlier, until, MONTH),
        ]
        enough = min(was, ended) >= CONVERSION_LEAST
        notable = enough and abs(share - earlier) >= CONVERSION_CHANGE
    return [Line(text + ".", tuple(facts), notable)]


def _aside(held: _Held, name: str, words: str) -> list[Line]:
    now = held.stock(name)
    if now is None or not now[1]:
        return []
    day, value = now
    return [
        Line(
            f"{LABELS[name]}: {value:,} on {day_in_words(day)} ({words}).", (Fact(name, "value", value, day),)
        )
    ]


def written(parts: Sequence[Told], fits: Callable[[str], bool]) -> str:
    """The text of all sources of a site, short enough for `fits`: plain lines go first, from the end."""
    left = list(parts)
    while not fits(text := "\n\n".join(part.text for part in left)):
        longest = max(left, key=lambda part: len(part.lines), default=None)
        if longest is None or not longest.lines:
            break
        kept = _shorter(longest)
        left[left.index(longest)] = Told(longest.source, longest.through, kept)
    return text


def _shorter(part: Told) -> tuple[Line, ...]:
    """The lines without the last plain one, or without the last if all stand out."""
    plain = [number for number, line in enumerate(part.lines) if not line.notable]
    gone = plain[-1] if plain else len(part.lines) - 1
    return part.lines[:gone] + part.lines[gone + 1 :]
