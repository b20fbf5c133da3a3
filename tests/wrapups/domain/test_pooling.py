"""Counting tenants without keeping them, and choosing which words of a group may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wrapups.domain.pooling import ENTERS, MOST_COUNTED, MOST_LEADERS, K, Leaders, Phrase, Wording, sampled

TENANTS = [UUID(int=number) for number in range(10, 40)]


def test_a_review_asks_for_one_tenant_more_than_staff_are_shown() -> None:
    assert (K, ENTERS) == (5, 6)


def test_many_items_of_one_tenant_count_once() -> None:
    leaders = Leaders(0.9)
    for tenant in TENANTS[:3]:
        for _ in range(20):
            leaders.add((1.0, 0.0), tenant)
    assert (len(leaders.of_many(3)), len(leaders.of_many(4))) == (1, 0)


def test_what_is_not_near_is_another_group() -> None:
    leaders = Leaders(0.9)
    for tenant in TENANTS[:5]:
        leaders.add((1.0, 0.1), tenant)
        leaders.add((0.1, 1.0), tenant)
    assert len(leaders.of_many(5)) == 2
    assert leaders.nearest((1.0, 0.0)) != leaders.nearest((0.0, 1.0))
    assert leaders.nearest((-1.0, -1.0)) is None


def test_however_many_items_come_few_are_kept() -> None:
    leaders, wording = Leaders(0.99), Wording()
    vectors = np.random.default_rng(5).normal(size=(MOST_LEADERS + 500, 24))
    for number, vector in enumerate(vectors):
        for tenant in TENANTS[: 2 if number == 7 else 1]:
            leaders.add(vector, tenant)
    assert len(leaders) <= MOST_LEADERS
    assert leaders.nearest(vectors[7]) is not None, "what more tenants share is forgotten last"
    for number in range(MOST_COUNTED + 500):
        for tenant in TENANTS[: 2 if number == 7 else 1]:
            wording.add([("word", str(number))], tenant)
    assert len(wording) <= MOST_COUNTED
    assert wording.shown(2) == [("word", "7")]
    for number in range(2 * MOST_COUNTED):
        for tenant in TENANTS[:2]:
            wording.add([("common", str(number))], tenant)
    assert len(wording) == MOST_COUNTED


def phrase(text: str) -> Phrase:
    return tuple(text.split())


def counted(*said: Sequence[str]) -> Wording:
    wording = Wording()
    for tenant, phrases in zip(TENANTS, said, strict=False):
        wording.add([phrase(one) for one in phrases], tenant)
    return wording


def test_a_phrase_of_few_does_not_show_in_a_group_of_many() -> None:
    rare = "sell beeswax candles"
    wording = counted(*[["raise the price", rare]] * 2, *[["raise the price"]] * 5)
    assert wording.shown(6) == [phrase("raise the price")]


def test_a_part_of_a_longer_phrase_is_left_out_and_the_order_tells_no_number() -> None:
    wording = counted(
        *[["annual plan", "price of the annual plan", "win back members"]] * 6, *[["add badges"]] * 7
    )
    assert wording.shown(6) == [
        phrase(one) for one in ("price of the annual plan", "win back members", "add badges")
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sets(st.sampled_from(["a b", "b c", "a b c", "d e", "e f"]))),
        max_size=40,
    )
)
@settings(max_examples=100, deadline=None)
def test_every_phrase_shown_was_said_by_enough_tenants(items: list[tuple[int, set[str]]]) -> None:
    wording = Wording()
    by_phrase: dict[str, set[int]] = {}
    for tenant, said in sorted(items, key=lambda item: item[0]):
        wording.add([phrase(one) for one in said], TENANTS[tenant])
        for one in said:
            by_phrase.setdefault(one, set()).add(tenant)
    for shown in wording.shown(5):
        assert len(by_phrase[" ".join(shown)]) >= 5


def test_who_is_in_the_sample_changes_with_the_key_and_not_within_a_review() -> None:
    drawn = [[sampled(bytes([key]) * 32, tenant, 0.8) for tenant in TENANTS] for key in range(20)]
    assert len({tuple(one) for one in drawn}) > 10
    assert drawn[3] == [sampled(bytes([3]) * 32, tenant, 0.8) for tenant in TENANTS]
    assert 0.7 < sum(map(sum, drawn)) / (20 * len(TENANTS)) < 0.9
    assert all(sampled(b"key", tenant, 1.0) for tenant in TENANTS)
