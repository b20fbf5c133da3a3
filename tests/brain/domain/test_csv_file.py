"""Files as people send them: read whole, or refused with every fault by row and column."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.domain.heartbeat import csv_file
from brain.domain.heartbeat.csv_file import MOST_BYTES, MOST_FAULTS, MOST_ROWS, BadFile
from brain.domain.heartbeat.metrics import COUNTS, LABELS, Day, Numbers, digits

TODAY = date(2026, 12, 1)


def read(text: str | bytes) -> list[Day]:
    return csv_file.read(text.encode() if isinstance(text, str) else text, today=TODAY)


def faults(text: str | bytes) -> list[str]:
    with pytest.raises(BadFile) as caught:
        read(text)
    return [str(fault) for fault in caught.value.faults]


def test_the_sample_is_read() -> None:
    days = read(csv_file.SAMPLE)
    assert [each.day.day for each in days] == [28, 29, 30]
    assert days[0].numbers == Numbers(
        {"active_members": 140, "trials": 5, "new": 3, "churned": 1, "failed_payments": 0}, {"USD": 686_000}
    )


def test_every_column_is_described() -> None:
    assert set(csv_file.ABOUT) == set(csv_file.COLUMNS)
    assert set(csv_file.COUNT_COLUMNS) <= set(COUNTS) <= set(LABELS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_ways_spreadsheets_write(encoding: str, delimiter: str, end: str) -> None:
    text = csv_file.SAMPLE.replace(",", delimiter).replace("\n", end)
    assert read(text.encode(encoding)) == read(csv_file.SAMPLE)


def test_a_comma_for_the_decimals_where_it_does_not_part_cells() -> None:
    assert read("day;mrr;currency\n2026-11-30;1234,50;EUR\n")[0].numbers.mrr == {"EUR": 123_450}
    assert read('day,mrr,currency\n2026-11-30,"1234.5",EUR\n')[0].numbers.mrr == {"EUR": 123_450}


def test_order_case_empty_cells_and_empty_rows_do_not_matter() -> None:
    days = read("New,DAY , Active Members\n\n2,2026-11-30,\n,,\n,2026-11-29,7\n")
    assert days == [
        Day(date(2026, 11, 29), Numbers({"active_members": 7})),
        Day(date(2026, 11, 30), Numbers({"new": 2})),
    ]


def test_a_second_currency_is_a_second_row_of_the_day() -> None:
    text = "day,active_members,mrr,currency\n2026-11-30,7,10.00,usd\n2026-11-30,,500,JPY\n2026-11-29,,1.005,KWD\n"
    assert [each.numbers.mrr for each in read(text)] == [{"KWD": 1005}, {"USD": 1000, "JPY": 500}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "",
            ["row 1, column day: this column is missing", "row 1: there is no column with a number"],
        ),
        ("day\n2026-11-30\n", ["row 1: there is no column with a number"]),
        (
            "day,members\n2026-11-30,7\n",
            ["row 1, column members: there is no such column; there are day, active_members"],
        ),
        ("active_members\n7\n", ["row 1, column day: this column is missing"]),
        ("day,new,new\n", ["row 1, column new: this column stands there twice"]),
        ("day,mrr\n", ["row 1, column currency: mrr needs"]),
        ("day,new\n", ["row 2: there is no row of numbers"]),
        ("day,new\n2026-11-30\n", ["row 2: it has 1 cells and the first row 2"]),
        ("day,new\n2026-11-30,1,2\n", ["row 2: it has 3 cells and the first row 2"]),
        ("day,new\n2026-11-30,1\n\n30.11.2026,1\n", ["row 4, column day: write the day as"]),
        ("day,new\n2026-02-30,1\n", ["row 2, column day: write the day as"]),
        ("day,new\n20261130,1\n", ["row 2, column day: write the day as"]),
        ("day,new\n2027-01-01,1\n", ["row 2, column day: the day lies in the future"]),
        ("day,new\n1999-12-31,1\n", ["row 2, column day: the day lies in the future, or before 2000"]),
        ("day,new\n2026-11-30,-1\n", ["row 2, column new: write a whole number"]),
        ("day,new\n2026-11-30,1.5\n", ["row 2, column new: write a whole number"]),
        ("day,new\n2026-11-30,١\n", ["row 2, column new: write a whole number"]),
        ('day,new\n2026-11-30,"1,400"\n', ["row 2, column new: write a whole number"]),
        ("day,new\n2026-11-30,9999999999999\n", ["row 2, column new: write a whole number"]),
        ("day,new\n2026-11-30,=1+1\n", ["row 2, column new: write a whole number"]),
        ("day,mrr,currency\n2026-11-30,1,US\n", ["row 2, column currency: write the three letters"]),
        ("day,mrr,currency\n2026-11-30,1,\n", ["row 2, column currency: write the three letters"]),
        ("day,mrr,currency\n2026-11-30,1.005,USD\n", ["row 2, column mrr: write an amount"]),
        ("day,mrr,currency\n2026-11-30,1.5,JPY\n", ["row 2, column mrr: write an amount"]),
        ("day,mrr,currency\n2026-11-30,1e9,USD\n", ["row 2, column mrr: write an amount"]),
        ("day,mrr,currency\n2026-11-30,NaN,USD\n", ["row 2, column mrr: write an amount"]),
        ("day,new\n2026-11-30,\n", ["row 2: there is no number in it"]),
        ("day,new\n2026-11-30,1\n2026-11-30,2\n", ["row 3, column new: 2026-11-30 has this already"]),
        (
            "day,mrr,currency\n2026-11-30,1,USD\n2026-11-30,2,USD\n",
            ["row 3, column currency: 2026-11-30 has this already"],
        ),
        ('day,new\n2026-11-30,"1\n', ["row 2: the quotation marks do not fit"]),
        ("day,new\n2026-11-30,x\nnever,y\n", ["row 2, column new", "row 3, column day", "row 3, column new"]),
    ],
)
def test_faults_name_row_and_column(text: str, expected: list[str]) -> None:
    found = faults(text)
    assert len(found) == len(expected)
    for one, begins in zip(found, expected, strict=True):
        assert one.startswith(begins)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ("day,new\n2026-11-30,1\n2026-11-29,é\n".encode("latin-1"), "row 3, column 2"),
        (csv_file.SAMPLE.encode("utf-16-le"), "row 1, column 1"),
        (b"\x89PNG\r\n\x1a\n\0\0", "row 1, column 1"),
        (b"PK\x03\x04\xff\xff", "row 1, column 1"),
        (b"\xff\xfed", "row 1, column 1"),
    ],
)
def test_other_encodings_and_other_files(data: bytes, where: str) -> None:
    (found,) = faults(data)
    assert found.startswith(f"{where}: this is not text in UTF-8")


def test_what_is_too_long() -> None:
    days = [date.fromordinal(TODAY.toordinal() - back) for back in range(MOST_ROWS + 1)]
    rows = [f"{day},1\n" for day in days]
    assert len(read("day,new\n" + "".join(rows[:-1]))) == MOST_ROWS
    assert faults("day,new\n" + "".join(rows)) == [
        f"row {MOST_ROWS + 2}: there are more than 4,000 rows; send the years apart"
    ]
    (found,) = faults(b"day,new\n" + b"x" * MOST_BYTES)
    assert found == f"row 2: the file is longer than {MOST_BYTES:,} bytes, which ends here"


def test_many_faults_are_counted_and_not_all_told() -> None:
    with pytest.raises(BadFile) as caught:
        read("day,new\n" + "2026-11-30,x\n" * 50)
    assert len(caught.value.faults) == MOST_FAULTS
    assert caught.value.more == 50 - MOST_FAULTS
    with pytest.raises(BadFile):
        read("day,new\n" + "2026-11-30,x\n" * MOST_ROWS)


@given(st.binary(max_size=300))
def test_nothing_breaks_it(data: bytes) -> None:
    refused: BadFile | None = None
    try:
        csv_file.read(data, today=TODAY)
    except BadFile as fault:
        refused = fault
    assert refused is None or all(fault.row >= 1 and fault.message for fault in refused.faults)


counts = st.dictionaries(st.sampled_from(csv_file.COUNT_COLUMNS), st.integers(0, 10**6), max_size=4)
amounts = st.dictionaries(st.sampled_from(["USD", "EUR", "JPY", "KWD"]), st.integers(0, 10**9), max_size=3)


@given(st.dictionaries(st.dates(date(2020, 1, 1), TODAY), st.builds(Numbers, counts, amounts), max_size=8))
def test_what_is_written_is_read_back(days: dict[date, Numbers]) -> None:
    rows = [",".join(csv_file.COLUMNS)]
    known = {day: numbers for day, numbers in days.items() if numbers.stored()}
    for day, numbers in known.items():
        cells = [str(numbers.counts.get(name, "")) for name in csv_file.COUNT_COLUMNS]
        if any(cells):
            rows.append(",".join([str(day), *cells, "", ""]))
        for code, minor in numbers.mrr.items():
            places = digits(code)
            whole, part = divmod(minor, 10**places)
            amount = f"{whole}.{part:0{places}d}" if places else str(whole)
            rows.append(",".join([str(day), *[""] * len(csv_file.COUNT_COLUMNS), amount, code]))
    if known:
        assert {each.day: each.numbers for each in read("\n".join(rows))} == known
