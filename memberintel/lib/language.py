"""Which language a text is in, where that can be told from its script or its small words; else nobody knows.

For asking a model again whose answer is in another language than what it was given. A wrong guess costs a call, so
what is not plain is left undecided.
"""

from __future__ import annotations

import re
from typing import Final

import regex

_READ: Final = 20_000  # characters; more tells nothing new
_LEAST_LETTERS, _LEAST_WORDS = 20, 12
_PLAIN_SCRIPT, _PLAIN_WORDS, _AHEAD = 0.6, 0.12, 1.5
_SCRIPTS: Final = {
    name: regex.compile(rf"\p{{Script={name}}}")
    for name in (
        "Cyrillic",
        "Greek",
        "Arabic",
        "Hebrew",
        "Devanagari",
        "Thai",
        "Hangul",
        "Hiragana",
        "Katakana",
        "Han",
    )
}
_KANA: Final = 0.1  # of the letters: less is Chinese that names something Japanese
_LETTER: Final = regex.compile(r"\p{L}")
_WORD: Final = re.compile(r"[^\W\d_]+")
_SMALL_WORDS: Final = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the and to of is that it for you with this was are have not but we they my what from your will be in on"
        " he she their our has had which who would should",
        "de": "der die das und ist nicht ich wir sie ein eine einen zu den mit auf für von dem es aber auch wie haben"
        " sich des im war wird oder als noch nach bei über",
        "fr": "le la les et est pas je nous vous une un des que qui pour dans sur avec mais ce il elle au du être de en"
        " sont ont été leur par plus cette",
        "es": "el la los las y es no yo que de una un para con por pero como más lo se su mi del al está en son ha fue"
        " sus este esta hay",
        "it": "il la le e è non io che di una un per con ma come più lo si mi del della sono gli nel da ha al dei"
        " questo anche loro",
        "pt": "o a os as e é não eu que de uma um para com por mas como mais se meu do da em são no na foi ao dos das"
        " isso está",
        "nl": "de het en is niet ik wij dat een voor met van maar ook te op zijn we er aan die naar bij om heeft was ze"
        " hun deze wordt",
        "sv": "och är inte jag vi det att en ett för med av men som på till den har de om från var när ska",
        "pl": "i jest nie ja my że w na do z się to ale jak o dla przez tym co są był jego ich od po",
    }.items()
}


def language(text: str) -> str:
    """The code of its language, or the name of its script where that says enough; "" where it is not plain."""
    text = text[:_READ]
    letters = len(_LETTER.findall(text))
    if letters < _LEAST_LETTERS:
        return ""
    return _by_script(text, letters) or _by_words(text)


def differ(one: str, other: str) -> bool:
    """Whether two texts are plainly in two languages."""
    first = language(one)
    second = language(other) if first else ""
    return bool(second) and first != second


def _by_script(text: str, letters: int) -> str:
    if text.isascii():
        return ""
    shares = {name: len(found.findall(text)) / letters for name, found in _SCRIPTS.items()}
    kana = shares.pop("Hiragana") + shares.pop("Katakana")
    if kana >= _KANA and kana + shares["Han"] >= _PLAIN_SCRIPT:
        return "Japanese"
    name = max(shares, key=lambda each: shares[each])
    return name if shares[name] >= _PLAIN_SCRIPT else ""


def _by_words(text: str) -> str:
    words = _WORD.findall(text.casefold())
    if len(words) < _LEAST_WORDS:
        return ""
    shares = {name: sum(word in small for word in words) / len(words) for name, small in _SMALL_WORDS.items()}
    first, second = sorted(shares.values(), reverse=True)[:2]
    plain = first >= _PLAIN_WORDS and first >= _AHEAD * second
    return max(shares, key=lambda each: shares[each]) if plain else ""
