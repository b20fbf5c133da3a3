"""A file of daily numbers, as a customer exports or types it: read whole or refused with every fault named.

One row a day, or one a day and currency. The columns stand in the first row, in any order; `day` must be there
and one more. An empty cell is a number nobody knows. Comma, semicolon or tab between cells; UTF-8, or UTF-16 with
its mark.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NoReturn

from brain.domain.heartbeat.metrics import BIGGEST, COUNTS, Day, Numbers, digits

MOST_BYTES: Final = 1_000_000
MOST_ROWS: Final = 4_000  # ten years of days
MOST_FAULTS: Final = 20
FIRST_DAY: Final = date(2000, 1, 1)
COUNT_COLUMNS: Final = tuple(name for name in COUNTS if name not in {"unpriced", "paused"})
COLUMNS: Final = ("day", *COUNT_COLUMNS, "mrr", "currency")
ABOUT: Final[dict[str, str]] = {
    "day": "The day, as 2026-11-30. Needed in every row.",
    "active_members": "How many members were active at the end of that day.",
    "trials": "How many trials were running at the end of that day.",
    "new": "How many began to pay on that day.",
    "churned": "How many paying members left on that day.",
    "failed_payments": "How many payments failed on that day.",
    "trials_ended": "How many trials ended on that day.",
    "trials_converted": "How many of those went on as paying members.",
    "mrr": "Monthly recurring revenue at the end of that day, as 6958.00.",
    "currency": "Of the mrr, as USD. For a second currency, add a row with the same day.",
}
SAMPLE: Final = (
    "day,active_members,mrr,currency,new,churned,failed_payments,trials\n"
    "2026-11-28,140,6860.00,USD,3,1,0,5\n"
    "2026-11-29,141,6909.00,USD,1,0,1,6\n"
    "2026-11-30,142,6958.00,USD,2,1,0,6\n"
)
_CURRENCY = re.compile(r"[A-Z]{3}")
_COUNT = re.compile(r"[0-9]{1,13}")
_AMOUNT = re.compile(r"[0-9]{1,13}(\.[0-9]{1,6})?")


@dataclass(frozen=True)
class Fault:
    """What is wrong in one place. Rows are counted from 1, the header being the first; column "" is the whole row."""

    row: int
    column: str
    message: str

    def __str__(self) -> str:
        where = f"row {self.row}, column {self.column}" if self.column else f"row {self.row}"
        return f"{where}: {self.message}"


class BadFile(Exception):
    """The file was refused whole. `faults` has the first MOST_FAULTS; `more` how many were not listed."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults[:MOST_FAULTS])
        self.more = max(0, len(faults) - MOST_FAULTS)
        super().__init__("; ".join(str(fault) for fault in self.faults))


@dataclass
class _Reading:
    """What was read so far. It gives up once there are many faults: a file with that many is of another kind."""

    faults: list[Fault] = field(default_factory=list)
    days: dict[date, Numbers] = field(default_factory=dict)

    def fault(self, row: int, column: str, message: str) -> None:
        self.faults.append(Fault(row, column, message))
        if len(self.faults) >= 5 * MOST_FAULTS:
            raise BadFile(self.faults)


def read(data: bytes, *, today: date) -> list[Day]:
    """The days of a file, ascending; BadFile with every fault otherwise. `today` is the site's."""
    if len(data) > MOST_BYTES:
        row = data.count(b"\n", 0, MOST_BYTES) + 1
        _refuse(row, "", f"the file is longer than {MOST_BYTES:,} bytes, which ends here")
    text = _decoded(data)
    reading = _Reading()
    rows = _rows(text)
    header = next(rows, (1, []))[1]
    columns = _header(header, reading)
    if not reading.faults:
        decimal_comma = "," not in text.partition("\n")[0]
        for number, cells in rows:
            _row(number, cells, columns, reading, today, decimal_comma)
        if not reading.days and not reading.faults:
            reading.fault(2, "", "there is no row of numbers below the header")
    if reading.faults:
        raise BadFile(reading.faults)
    return [Day(day, reading.days[day]) for day in sorted(reading.days)]


def _refuse(row: int, column: str, message: str) -> NoReturn:
    raise BadFile([Fault(row, column, message)])


def _decoded(data: bytes) -> str:
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].rpartition(b"\n")[2]
        row = data[: error.start].count(b"\n") + 1
        column = str(before.count(b",") + before.count(b";") + before.count(b"\t") + 1)
        _refuse(row, column, "this is not text in UTF-8; save the file as “CSV UTF-8” and send it again")
    if "\0" in text:
        row = text[: text.index("\0")].count("\n") + 1
        _refuse(row, "1", "this is not text in UTF-8 (UTF-16 needs its mark at the beginning)")
    return text


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    first = text.partition("\n")[0]
    delimiter = next((each for each in (",", ";", "\t") if each in first), ",")
    number = 0
    try:
        for number, cells in enumerate(
            csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
        ):
            if number > MOST_ROWS + 1:
                _refuse(number, "", f"there are more than {MOST_ROWS:,} rows; send the years apart")
            yield number, [cell.strip() for cell in cells]
    except csv.Error:
        _refuse(number + 1, "", "the quotation marks do not fit: one is opened and not closed")


def _header(cells: list[str], reading: _Reading) -> list[str]:
    columns = [cell.lower().replace(" ", "_") for cell in cells]
    seen: set[str] = set()
    for place, name in enumerate(columns, 1):
        shown = name[:40] or str(place)
        if name not in COLUMNS:
            reading.fault(1, shown, f"there is no such column; there are {', '.join(COLUMNS)}")
        elif name in seen:
            reading.fault(1, shown, "this column stands there twice")
        seen.add(name)
    if "day" not in seen:
        reading.fault(1, "day", "this column is missing")
    if not seen - {"day", "currency"}:
        reading.fault(1, "", "there is no column with a number")
    for one, other in (("mrr", "currency"), ("currency", "mrr")):
        if one in seen and other not in seen:
            reading.fault(1, other, f"{one} needs this column beside it")
    return columns


def _row(
    number: int, cells: list[str], columns: list[str], reading: _Reading, today: date, decimal_comma: bool
) -> None:
    if not any(cells):
        return
    if len(cells) != len(columns):
        reading.fault(number, "", f"it has {len(cells)} cells and the first row {len(columns)}")
        return
    given = dict(zip(columns, cells, strict=True))
    before = len(reading.faults)
    day = _day(number, given["day"], reading, today)
    numbers = Numbers(_counts(number, given, reading), _mrr(number, given, reading, decimal_comma))
    if day is None or len(reading.faults) > before:
        return
    if not numbers.stored():
        reading.fault(number, "", "there is no number in it")
        return
    standing = reading.days.get(day, Numbers())
    twice = [name for name in numbers.counts if name in standing.counts]
    twice += ["currency"] if numbers.mrr.keys() & standing.mrr.keys() else []
    for column in twice:
        reading.fault(number, column, f"{day} has this already, in a row above")
    reading.days[day] = numbers.over(standing)


def _day(number: int, cell: str, reading: _Reading, today: date) -> date | None:
    try:
        day = date.fromisoformat(cell) if len(cell) == 10 else None
    except ValueError:
        day = None
    if day is None:
        reading.fault(number, "day", "write the day as 2026-11-30")
    elif not FIRST_DAY <= day <= today + timedelta(days=1):
        reading.fault(number, "day", "the day lies in the future, or before 2000")
    return day


def _counts(number: int, given: dict[str, str], reading: _Reading) -> dict[str, int]:
    found = {}
    for name in COUNT_COLUMNS:
        cell = given.get(name, "")
        if not cell:
            continue
        if _COUNT.fullmatch(cell) and int(cell) <= BIGGEST:
            found[name] = int(cell)
        else:
            reading.fault(number, name, "write a whole number, without signs or separators, such as 140")
    return found


def _mrr(number: int, given: dict[str, str], reading: _Reading, decimal_comma: bool) -> dict[str, int]:
    cell, currency = given.get("mrr", ""), given.get("currency", "").upper()
    if not cell:
        return {}
    if not _CURRENCY.fullmatch(currency):
        reading.fault(number, "currency", "write the three letters of the currency, such as USD")
        return {}
    plain = cell.replace(",", ".") if decimal_comma else cell
    minor = Decimal(plain).scaleb(digits(currency)) if _AMOUNT.fullmatch(plain) else None
    if minor is None or minor != minor.to_integral_value() or minor > BIGGEST:
        places = digits(currency)
        example = "6958" if not places else f"6958.{'0' * places}"
        reading.fault(number, "mrr", f"write an amount without separators, such as {example} for {currency}")
        return {}
    return {currency: int(minor)}
