"""A comparison says both texts, whatever they are, and costs little even where everything repeats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brain.domain.diff import Line, diff

WORDS = st.sampled_from(["price", "is", "$49", "$59", ".", ",", " ", "  ", "\n", "\n\n", "é", "a", "member"])
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=40).map("".join), st.lists(WORDS).map(" ".join))


def told(before: str, after: str) -> list[tuple[str, str]]:
    """Each line with the words that changed in brackets."""
    return [(line.sign, "".join(marked(line))) for line in diff(before, after)]


def marked(line: Line) -> list[str]:
    return [piece.text if piece.sign == "same" else f"[{piece.text}]" for piece in line.pieces]


@given(TEXTS, TEXTS)
def test_a_comparison_says_both_texts_in_order(before: str, after: str) -> None:
    lines = diff(before, after)
    assert "\n".join(line.text for line in lines if line.sign != "added") == before
    assert "\n".join(line.text for line in lines if line.sign != "removed") == after
    assert all(piece.sign in {"same", line.sign} for line in lines for piece in line.pieces)


@given(TEXTS)
def test_a_text_beside_itself_has_no_change(text: str) -> None:
    assert all(line.sign == "same" for line in diff(text, text))


def test_only_the_words_that_changed_are_marked() -> None:
    before = "Offers\nThe price is $49 a month.\nChurn: 6 %"
    after = "Offers\nThe price is $59 a month.\nTrial: 7 days\nChurn: 6 %"
    assert told(before, after) == [
        ("same", "Offers"),
        ("removed", "The price is $[49 ]a month."),
        ("added", "The price is $[59 ]a month."),
        ("added", "[Trial: 7 days]"),
        ("same", "Churn: 6 %"),
    ]


def test_where_everything_repeats_lines_are_compared_as_wholes() -> None:
    lines = diff("a " * 8000, "a b " * 4000)
    assert [line.sign for line in lines] == ["removed", "added"]


def test_blank_lines_do_not_hide_what_stayed() -> None:
    before = "\n\n".join(f"fact number {number}" for number in range(400))
    after = before.replace("number 3\n", "number three\n").replace("number 390", "number many")
    lines = diff(before, after)
    assert [line.text for line in lines if line.sign == "added"] == ["fact number three", "fact number many"]
    assert sum(line.sign == "same" for line in lines) == 797
