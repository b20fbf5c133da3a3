"""The terms of a text: words in any script, found in other forms, the same however they are written."""

from __future__ import annotations

import unicodedata
from itertools import pairwise, product
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.lib import terms

LANGUAGES = st.sampled_from([*terms.STEMMERS, terms.PLAIN])


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "discounts", "discounted"),
        ("de", "Häuser", "Haus"),
        ("fr", "abonnements", "abonnement"),
        ("es", "clientes", "cliente"),
        ("nl", "kortingen", "korting"),
    ],
)
def test_forms_of_a_word_are_one_term(language: str, one: str, other: str) -> None:
    assert terms.terms(one, language) == terms.terms(other, language)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don’t panic: $49!", ["don", "t", "panic", "49"]),
        ("snake_case", ["snake", "case"]),
        ("ＡＢＣ ﬁn m²", ["abc", "fin", "m2"]),
        ("CAFE\u0301", ["café"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Stripe決済 v2", ["stripe", "決済", "v2"]),
        ("a\x00b", ["a", "b"]),
        ("…!? —", []),
        ("", []),
    ],
)
def test_what_is_a_word(text: str, found: list[str]) -> None:
    assert terms.read(terms.fold(text)) == found


def test_a_script_without_spaces_is_cut_into_pairs_and_han_into_single_ones_too() -> None:
    assert terms.terms("会員料金は", "en") == ["会員", "員料", "料金", "金は", "会", "員", "料", "金"]
    assert terms.asked("料金") == ["料金"]
    assert terms.asked("猫") == ["猫"]


@pytest.mark.parametrize(
    ("told", "used"), [("pt-BR", "pt"), ("de_AT", "de"), ("EN", "en"), ("ja", ""), ("", "")]
)
def test_a_language_falls_back_to_one_there_is(told: str, used: str) -> None:
    assert terms.stemmed_as(told) == used


def test_no_text_has_more_terms_than_a_row_can_hold() -> None:
    text = "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(100_000))
    assert len(terms.terms(text, "en")) <= terms.MOST_TERMS


@given(st.text(), LANGUAGES)
def test_each_word_of_a_text_asks_only_for_terms_of_the_text(text: str, language: str) -> None:
    known = set(terms.terms(text, language))
    for word in terms.read(terms.fold(text)):
        asked = terms.asked(word) if terms.unspaced(word) else terms.stems([word], language)
        assert known.issuperset(asked)


@given(st.text())
def test_how_a_text_is_written_makes_no_difference(text: str) -> None:
    found = terms.terms(text, "en")
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert terms.terms(unicodedata.normalize(form, text), "en") == found


@given(st.text())
def test_words_stand_where_they_are_located(text: str) -> None:
    normal = terms.normal(text)
    words = terms.locate(normal)
    assert [word.text for word in words if terms.fold(normal[word.start : word.end]) != word.text] == []
    assert all(one.end <= next_.start for one, next_ in pairwise(words))


@given(st.text(), st.text("ab 1é猫_-."))
def test_words_wanted_are_those_of_all(text: str, plain: str) -> None:
    for each in map(terms.normal, (text, plain)):
        words = terms.locate(each)
        wanted = {word.text for word in words[::2]}
        assert terms.locate(each, wanted) == [word for word in words if word.text in wanted]


@given(st.text("ab 1é猫_-."))
def test_a_spaced_text_tells_what_reading_it_does(text: str) -> None:
    folded = terms.fold(text)
    words, spaced = terms.read(folded), terms.spaced(folded)
    assert spaced.split() == words
    assert sorted(terms.beginning(spaced, "a1")) == sorted(word for word in words if word[0] in "a1")
    for word in set(words):
        after = [next_ for this, next_ in pairwise([*words, ""]) if this == word]
        assert list(terms.following(spaced, word)) == after


@pytest.mark.parametrize("language", sorted(terms.STEMMERS.keys() - terms.BEGIN_OTHERWISE))
def test_a_stem_begins_as_its_word(language: str) -> None:
    short = ["".join(letters) for many in (1, 2, 3) for letters in product(ascii_lowercase, repeat=many)]
    words = short + [
        f"{word}{ending}" for word in short[::5] for ending in ("ies", "ing", "ation", "enheid", "lar")
    ]
    stems = terms.stems(words, language)
    assert [word for word, stem in zip(words, stems, strict=True) if stem[0] != word[0]] == []


@given(st.lists(st.sampled_from(["price", "of", "猫が", "das", "haus"]), min_size=1, max_size=4))
def test_a_phrase_finds_its_words_whole_and_side_by_side(words: list[str]) -> None:
    pattern = terms.phrase(words)
    assert pattern.search(" – ".join(words))
    if len(words) > 1 and not any(map(terms.unspaced, words)):
        assert not pattern.search("x".join(words))
        assert not pattern.search(" and ".join(words))
