"""What numbers tell: every number in the text is one of the input's, or follows from them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from brain.domain.heartbeat import narrative
from brain.domain.heartbeat.metrics import FLOWS, STOCKS, Day, Numbers, currencies, in_major, money
from brain.domain.heartbeat.narrative import Fact, Told
from brain.domain.heartbeat.plot import plot, series
from brain.domain.prompt import MONTHS

LAST = date(2026, 11, 30)


def back(days: int) -> date:
    return LAST - timedelta(days=days)


def told(days: dict[date, Numbers]) -> Told:
    found = narrative.told("csv", [Day(day, numbers) for day, numbers in days.items()])
    assert found is not None
    return found


def steady(length: int = 61, **counts: int) -> dict[date, Numbers]:
    return {back(n): Numbers(dict(counts)) for n in range(length)}


def test_trends_against_a_week_and_a_month() -> None:
    days = steady(active_members=131, new=1, churned=0)
    days[back(7)] = Numbers({"active_members": 138, "new": 1, "churned": 0})
    days[LAST] = Numbers({"active_members": 142, "new": 3, "churned": 2}, {"USD": 695_800})
    assert told(days).text.split("\n") == [
        "Through 30 November 2026, from an uploaded file.",
        "",  # else the line would be read as a part of what stands above it
        "The numbers:",
        "- Active members: 142 on 30 November 2026; a week before 138 (+4, +3 %); 30 days before 131 (+11, +8 %).",
        "- MRR: 6,958.00 USD on 30 November 2026.",
        "- New members: 9 in the 7 days to 30 November 2026, 7 in the 7 before; 32 in 30 days.",
        "- Churned members: 2 in the 7 days to 30 November 2026, 0 in the 7 before; 2 in 30 days.",
    ]


def test_a_spike_and_a_fall_stand_out_first() -> None:
    days = {back(n): Numbers({"active_members": 200, "churned": 1 if n % 7 == 0 else 0}) for n in range(61)}
    for n in range(7):
        days[back(n)] = Numbers({"active_members": 180, "churned": 3})
    text = told(days).text
    assert "What stands out:\n- Active members: 180 on 30 November 2026" in text
    assert (
        "- More members left than usual: 21 in the 7 days to 30 November 2026, against 4 in the four weeks"
        in text
    )


def test_two_more_than_usual_are_no_spike() -> None:
    days = steady(churned=0)
    days[LAST] = Numbers({"churned": 2})
    assert not told(days).notable


def test_failed_payments_and_trials() -> None:
    days = steady(failed_payments=0, trials_ended=1, trials_converted=1)
    for n in range(30):
        days[back(n)] = Numbers({"failed_payments": 1, "trials_ended": 1, "trials_converted": n % 2})
    text = told(days).text
    assert "Trials: of 30 that ended in the 30 days to 30 November 2026, 15 became paying (50 %)" in text
    assert "; of 30 in the 30 days before, 30 (100 %)." in text
    assert any(line.text.startswith("Trials") for line in told(days).notable)


def test_what_is_not_known_is_not_said() -> None:
    days = steady(8, new=1)
    assert "7 before" not in told(days).text
    assert "30 days" not in told(days).text
    del days[back(3)]
    assert "New members: 1 on 30 November 2026; the days before are not all known." in told(days).text
    assert narrative.told("csv", []) is None
    assert told({LAST: Numbers()}).lines == ()


def test_currencies_stand_by_themselves() -> None:
    days = {LAST: Numbers({}, {"JPY": 9_000, "USD": 5_000, "EUR": 100, "GBP": 1})}
    lines = [line.text for line in told(days).lines]
    assert lines == [
        "MRR: 9,000 JPY on 30 November 2026.",
        "MRR: 50.00 USD on 30 November 2026.",
        "MRR: 1.00 EUR on 30 November 2026.",
        "There is MRR in further currencies too: GBP.",
        "MRR stands in each currency by itself; the amounts are not added together.",
    ]


def test_a_currency_nobody_pays_in_any_more_has_fallen_to_nothing() -> None:
    days = {back(30): Numbers({}, {"USD": 5_000}), LAST: Numbers({}, {"USD": 4_000})}
    assert told(days).notable[0].text.startswith("MRR: 40.00 USD")


def test_a_text_that_is_too_long_loses_plain_lines_from_the_end() -> None:
    days = steady(active_members=5, new=1, churned=1, failed_payments=0, trials=2)
    whole = told(days)
    cut = narrative.written([whole, whole], lambda text: len(text) < 700)
    assert len(cut) < 700
    assert cut.count("Through 30 November 2026") == 2
    assert cut.count("Active members") == 2
    assert "Running trials" not in cut
    assert (
        narrative.written([whole], lambda text: False) == "Through 30 November 2026, from an uploaded file."
    )


# --- properties ------------------------------------------------------------------------------------------

values = st.integers(0, 50) | st.integers(0, 10**6)
day_counts = st.dictionaries(st.sampled_from([*STOCKS, *FLOWS]), values)
day_mrr = st.dictionaries(st.sampled_from(["USD", "EUR", "JPY"]), values, max_size=2)
many_days = st.dictionaries(
    st.integers(0, 70).map(back), st.builds(Numbers, day_counts, day_mrr), min_size=1, max_size=71
)
whole_days = st.builds(
    lambda length, counts: {back(n): Numbers(counts[n % len(counts)]) for n in range(length)},
    st.integers(1, 71),
    st.lists(st.fixed_dictionaries(dict.fromkeys((*STOCKS, *FLOWS), values)), min_size=1, max_size=9),
)
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
FIXED = re.compile(
    rf"\d+ (?:{'|'.join(MONTHS)}) \d{{4}}|in the 7 days|in the 7 before|in 30 days|the 30 days|30 days before"
)


def recomputed(fact: Fact, days: dict[date, Numbers]) -> Decimal:
    """The fact anew, from the input alone."""

    def at(day: date) -> int:
        found = days[day]
        return found.mrr.get(fact.currency, 0) if fact.currency else found.counts[fact.metric]

    def total(metric: str) -> int:
        return sum(days[fact.day - timedelta(days=n)].counts[metric] for n in range(fact.days))

    if fact.kind == "sum":
        return Decimal(total(fact.metric))
    if fact.metric == "trials_converted":
        return Decimal(100 * total("trials_converted")) / total("trials_ended")
    now, then = at(fact.day), at(fact.day - timedelta(days=fact.days)) if fact.days else 0
    if fact.kind == "value":
        return Decimal(at(fact.day))
    if fact.kind == "change":
        return Decimal(now - then)
    return Decimal(100 * (now - then)) / then


@settings(max_examples=60, deadline=None)
@given(many_days | whole_days)
def test_every_number_in_the_text_is_in_the_input_or_follows_from_it(days: dict[date, Numbers]) -> None:
    found = told(days)
    for line in found.lines:
        allowed = set()
        for fact in line.facts:
            right = recomputed(fact, days)
            assert abs(right - fact.value) <= (Decimal("0.5") if fact.kind == "percent" else 0), (line, fact)
            allowed.add(
                in_major(fact.value, fact.currency)
                if fact.currency and fact.kind != "percent"
                else fact.value
            )
        for number in NUMBER.findall(FIXED.sub("", line.text)):
            assert Decimal(number.replace(",", "")) in allowed, (number, line)


@settings(max_examples=30, deadline=None)
@given(many_days)
def test_the_same_numbers_tell_the_same_in_any_order(days: dict[date, Numbers]) -> None:
    turned = dict(reversed(days.items()))
    assert told(days) == told(turned)
    assert told(days).through == max(days)


@settings(max_examples=40, deadline=None)
@given(many_days)
def test_a_plot_stays_in_its_frame(days: dict[date, Numbers]) -> None:
    rows = [Day(day, days[day]) for day in sorted(days)]
    for each in series(rows, ["active_members", "mrr", "new", "churned"]):
        drawn = plot(each, rows[0].day, rows[-1].day)
        assert drawn is not None
        assert len(drawn.points) == len(each.values)
        for point in drawn.points:
            assert 0 <= point.x <= drawn.width
            assert 0 <= point.y <= drawn.height
            assert point.height >= 0
        assert drawn.levels[0].at > drawn.levels[1].at > drawn.levels[2].at


def test_a_line_is_not_drawn_across_days_nobody_knows() -> None:
    days = [Day(back(n), Numbers({"active_members": 100 + n})) for n in (20, 19, 18, 2, 1, 0)]
    drawn = plot(series(days, ["active_members"])[0], back(20), LAST)
    assert drawn is not None
    assert len(drawn.lines) == 2
    assert drawn.summary == "Active members: 120 on 10 November 2026, 100 on 30 November 2026."


def test_amounts_have_the_decimals_of_their_currency() -> None:
    assert [money(123_456, code) for code in ("USD", "JPY", "KWD", "ISK", "UGX")] == [
        "1,234.56 USD",
        "123,456 JPY",
        "123.456 KWD",
        "1,234.56 ISK",
        "1,234.56 UGX",
    ]
    assert currencies([Day(LAST, Numbers({}, {"EUR": 100, "JPY": 100}))]) == ["JPY", "EUR"]
