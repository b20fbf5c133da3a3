"""The title a session has until a better one is made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.domain import title


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Should I raise the price?", "Should I raise the price?"),
        ("Hello!\nHow do I\twin members back?", "Hello! How do I win members back?"),
        ("one two three four five six seven, eight, nine", "one two three four five six seven, eight…"),
        ("## **Plan** for May", "Plan** for May"),
        (" \n\t ", title.UNTITLED),
        ("", title.UNTITLED),
        ("---", title.UNTITLED),
    ],
)
def test_the_first_words_make_the_title(text: str, expected: str) -> None:
    assert title.from_first_words(text) == expected


@given(st.text())
def test_a_title_is_one_short_line(text: str) -> None:
    made = title.from_first_words(text)
    assert made.strip()
    assert len(made) <= title.CHARACTERS + 1
    assert made.splitlines() == [made]


def test_a_word_without_end_is_cut() -> None:
    assert title.from_first_words("x" * 100_000) == "x" * 59 + "…"
