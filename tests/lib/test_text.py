"""Texts are cleaned, counted and shortened without breaking a character."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memberintel.lib.text import clean, count_words, shorten, shorten_words


@given(st.text(alphabet=st.characters()))
def test_cleaning_leaves_what_a_database_can_hold_and_keeps_the_rest(raw: str) -> None:
    cleaned = clean(raw)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert not regex.search(r"[^\P{Cc}\n\t]", cleaned)
    assert cleaned.replace("\n", "") == regex.sub(r"[^\P{Cc}\t]|\p{Cs}", "", raw)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", 0),
        (" … — !", 0),
        ("It's 3.5 % more, can't wait", 5),
        ("e-mail", 2),
        ("我们决定涨价", 6),
        ("naïve café", 2),
        ("👩‍👩‍👧 ok", 1),
    ],
)
def test_words_are_counted_by_unicode_boundaries(line: str, words: int) -> None:
    assert count_words(line) == words


@given(st.text(), st.integers(0, 40))
def test_shortening_keeps_whole_characters_and_the_limit(raw: str, limit: int) -> None:
    short = shorten(raw, limit)
    assert len(short) <= limit or short == raw
    if short != raw and short.endswith("…"):
        kept = short.removesuffix("…")
        edges = {match.end() for match in regex.finditer(r"\X", raw)} | {0}
        assert raw.startswith(kept)
        assert len(kept) in edges or regex.fullmatch(r"[\s,;:–—-]*\X?.*", raw[len(kept) :], regex.DOTALL)


@given(st.text(), st.integers(0, 20))
def test_shortening_by_words_keeps_the_limit(raw: str, limit: int) -> None:
    assert count_words(shorten_words(raw, limit)) <= limit
    if count_words(raw) <= limit:
        assert shorten_words(raw, limit) == raw


def test_shortening_cuts_between_words() -> None:
    assert shorten("raise the yearly price", 14) == "raise the…"
    assert shorten("👩‍👩‍👧👩‍👩‍👧", 6) == "👩‍👩‍👧…"
    assert shorten_words("raise the yearly price", 2) == "raise the…"
