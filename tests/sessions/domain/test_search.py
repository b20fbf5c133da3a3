"""Ranking and snippets: pure rules on opened texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.domain import search as rules

NO_AGE = 0.0
LONG = "Nothing to see in this part of the text. " * 40


def order(query: str, *texts: str, languages: tuple[str, ...] = ("en",)) -> list[int]:
    """Places of the texts that answer, the best first; the first given is the newest, all of one age."""
    ranked = rules.read(rules.parse(query), texts, languages).rank([NO_AGE] * len(texts))
    return [match.place for match in ranked]


def shown(query: str, text: str) -> tuple[str, list[str]]:
    """(the snippet as one text, the parts that are marked)."""
    pieces = rules.read(rules.parse(query), [text], ["en"]).snippet(0)
    return "".join(piece.text for piece in pieces), [piece.text for piece in pieces if piece.found]


def test_more_often_is_better() -> None:
    assert order("price", "a price", "price, price and price", "no such word") == [1, 0]


def test_side_by_side_is_better() -> None:
    assert order("discount campaign", "a campaign with a discount", "the discount campaigns") == [1, 0]


def test_newer_is_better_and_age_fades() -> None:
    query, ages = rules.parse("price"), [365 * 86_400.0, 0.0, 30 * 86_400.0]
    ranked = rules.read(query, ["price"] * 3, ["en"]).rank(ages)
    assert [match.place for match in ranked] == [1, 2, 0]
    assert ranked[1].score == pytest.approx(1.5)


def test_equal_ones_stand_newest_first() -> None:
    assert order("price", "one price", "two price", "a price") == [0, 1, 2]


def test_all_words_must_be_there() -> None:
    assert order("price rise", "price", "rise", "the rise of a price") == [2]


def test_forms_that_begin_otherwise_are_found() -> None:
    assert order("Arzt", "Die Ärzte kamen", "kein Azt", "ein Arzt", languages=("de",)) == [0, 2]
    assert order("membeli", "beli", "membeli", languages=("id",)) == [0, 1]


def test_a_long_query_is_read_as_a_short_one_is() -> None:
    words = "alpha beta gamma delta epsilon zeta eta theta"
    assert order(words, words, words.replace("delta", "omega"), f"{words} {words}") == [2, 0]


@pytest.mark.parametrize("quotes", ['"{}"', "“{}”", "«{}»", "„{}“"])
def test_what_is_quoted_stands_as_it_is_written(quotes: str) -> None:
    texts = ("campaign of the discount", "The discount campaign!", "discount campaigns", "discount, campaign")
    assert sorted(order(quotes.format("Discount campaign"), *texts)) == [1, 3]


def test_a_quote_that_does_not_end_is_no_phrase() -> None:
    assert rules.parse('"discount campaign').phrases == ()
    assert order('"discount campaign', "a campaign with a discount") == [0]


def test_a_run_of_a_script_without_spaces_stands_together() -> None:
    assert order("会員料金", "会員料金は安い", "料金と会員料") == [0]
    assert order('"会員 料金"', "会員 料金", "会員、料金", "料金 会員") == [0, 1]


def test_two_forms_of_one_word_ask_for_one_word() -> None:
    assert order("discount discounts", "a discount") == [0]


def test_a_word_counts_in_each_language_that_texts_are_indexed_in() -> None:
    assert order("Häuser", "das Haus", languages=("en",)) == []
    assert order("Häuser", "das Haus", languages=("en", "de")) == [0]


@pytest.mark.parametrize("query", ["", "   ", "!?…", "\u0000", '""', "&|!():*<->"])
def test_nothing_to_look_for(query: str) -> None:
    assert rules.parse(query).words == ()


def test_a_long_query_is_cut_and_says_so() -> None:
    assert not rules.parse("some words").cut
    many = rules.parse(" ".join(f"w{n}" for n in range(100)))
    assert (len(many.words), many.cut) == (rules.MOST_WORDS, True)
    assert rules.parse("x" * 10_000).cut


def test_the_snippet_marks_what_was_found_and_keeps_white_space_single() -> None:
    assert shown("discount", "We gave\n\n a  Discount; discounts") == (
        "We gave a Discount; discounts",
        ["Discount", "discounts"],
    )


def test_the_snippet_is_the_stretch_with_most_of_the_words() -> None:
    text = f"{LONG} one zebra here. {LONG} a striped zebra there. {LONG}"
    snippet, marked = shown("zebra striped", text)
    assert marked == ["striped", "zebra"]
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet) <= rules.SNIPPET + 2


def test_a_snippet_of_a_run_marks_it_inside() -> None:
    assert shown("料金", "会員料金は") == ("会員料金は", ["料金"])


def test_markup_stays_text() -> None:
    assert shown("script", "<script>alert(1)</script>")[0] == "<script>alert(1)</script>"


@given(st.text(max_size=2_000), st.data())
def test_every_word_of_a_text_ranks_it_and_is_marked(text: str, data: st.DataObject) -> None:
    words = rules.parse(text).words
    if not words:
        return
    word = data.draw(st.sampled_from(words))
    assert order(word, text) == [0]
    assert shown(word, text)[1]


@given(st.text(), st.text())
def test_nothing_breaks_it(query: str, text: str) -> None:
    order(query, text, text + query)
    shown(query, text)
