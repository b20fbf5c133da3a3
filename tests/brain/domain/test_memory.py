from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.domain.memory import Near, Thing, Thresholds, Vector, echoes, nearest, normal

LINES = Thresholds({"a:1": 0.5}, other=0.9, words=0.3)
WORDS = st.lists(st.text(string.ascii_letters + "äß£9", min_size=1, max_size=8), min_size=1, max_size=8)


def thing(key: str, *values: float, embedder: str = "a:1", text: str = "") -> Thing[str]:
    return Thing(key, text or key, Vector(values, embedder) if values else None)


def names(found: list[Near[str]]) -> list[str]:
    return [near.key for near in found]


# --- nearest -----------------------------------------------------------------------------------------------


def test_the_nearest_come_first_and_no_more_than_asked_for() -> None:
    things = [thing("near", 1, 0.5), thing("nearer", 1, 0.2), thing("far", 0, 1), thing("same", 2, 0)]
    found = nearest("?", Vector((1, 0), "a:1"), things, LINES, most=2)
    assert names(found) == ["same", "nearer"]
    assert found[0].strength == pytest.approx(1)
    assert [near.words for near in found] == ["very close", "very close"]


def test_each_embedder_has_its_own_threshold() -> None:
    near = (1.0, 0.7)
    assert names(nearest("?", Vector((1, 0), "a:1"), [thing("x", *near)], LINES, most=5)) == ["x"]
    other = [thing("x", *near, embedder="b:1")]
    assert nearest("?", Vector((1, 0), "b:1"), other, LINES, most=5) == []


def test_vectors_of_two_embedders_are_not_compared_but_their_words_are() -> None:
    things = [
        thing("kiln", 1, 0, embedder="b:1", text="Most members have no kiln"),
        thing("price", 1, 0, embedder="b:1", text="The price stays at 24"),
        thing("unready", text="A kiln is what they lack"),
    ]
    found = nearest("What about the kiln?", Vector((1, 0), "a:1"), things, LINES, most=5)
    assert set(names(found)) == {"kiln", "unready"}
    assert set(names(nearest("What about the kiln?", None, things, LINES, most=5))) == {"kiln", "unready"}


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=12), st.integers(1, 5))
def test_what_is_near_is_over_the_line_in_order_and_from_the_things(
    vectors: list[tuple[float, float]], most: int
) -> None:
    things = [thing(str(number), *values) for number, values in enumerate(vectors)]
    found = nearest("?", Vector((1, 0), "a:1"), things, LINES, most=most)
    assert len(found) <= most
    assert set(names(found)) <= {each.key for each in things}
    strengths = [near.strength for near in found]
    assert strengths == sorted(strengths, reverse=True)
    assert all(0 <= strength <= 1.0001 for strength in strengths)


# --- the same and nearly the same ----------------------------------------------------------------------------


@given(WORDS, st.sampled_from(["", ".", "!", "…", '"']), st.sampled_from(["", "- ", "  ", "* "]))
def test_case_spaces_bullets_and_outer_punctuation_do_not_make_another_text(
    words: list[str], end: str, start: str
) -> None:
    plain = " ".join(words)
    assert normal(start + "   ".join(words).upper() + end) == normal(plain.upper())
    assert normal(normal(plain)) == normal(plain)


@given(WORDS, WORDS)
def test_texts_of_other_words_are_other_texts(one: list[str], other: list[str]) -> None:
    same = [word.casefold() for word in one] == [word.casefold() for word in other]
    assert (normal(" ".join(one)) == normal(" ".join(other))) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("She runs the forum", "She no longer runs the forum"),
        ("The price is $49", "The price is $59"),
        ("Call her", "Call him"),
    ],
)
def test_a_correction_is_neither_the_same_nor_an_echo(one: str, other: str) -> None:
    assert normal(one) != normal(other)
    assert not echoes(other, [one])


SHOWN = "Kiln & Kin has 212 members at 24 pounds a month.\nMara films every lesson herself on Mondays."


@pytest.mark.parametrize(
    "said",
    [
        "Mara films every lesson herself on Mondays.",
        "mara films every lesson herself, on mondays",
        "212 members at 24 pounds a month",
        SHOWN,
    ],
)
def test_what_was_shown_in_these_words_is_an_echo(said: str) -> None:
    assert echoes(said, ["Something else.", SHOWN])


@pytest.mark.parametrize(
    "said",
    [
        "Kiln & Kin has 198 members at 24 pounds a month.",
        "Mara no longer films every lesson herself on Mondays.",
        "Tomas films every lesson on Mondays",
        "Mondays every lesson films Mara herself on",
        "",
    ],
)
def test_what_is_new_in_a_word_is_no_echo(said: str) -> None:
    assert not echoes(said, [SHOWN])
