"""What a text can be found by: its words, as stems of one language; pairs of characters where scripts have no spaces.

Text is compared in NFKC and without case. A word is a run of letters, marks and digits; everything else parts
words, so "don't" is two of them and "49" is found in "$49". A run of a script that is written without spaces is
cut into overlapping pairs, and where a single character is a word (Han) into characters too.

A change of anything here that alters the terms of a text raises VERSION: indexes made before are then made anew.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import snowballstemmer

VERSION: Final = 1
MOST_TERMS: Final = 50_000
"""Distinct terms kept of one text: more than a message of words can have, and within what one index row can hold."""
LONGEST_WORD: Final = 64
"""Characters of a word that count: beyond that it is no word of a language but data."""

STEMMERS: Final = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
"""Languages with a stemmer, by their codes. In any other a word is found in the form it has."""
PLAIN: Final = ""
"""The language of those others."""
BEGIN_OTHERWISE: Final = frozenset({"id", "nl", "tr"})
"""Languages in which a stem can begin with another letter than its word, also in plain ASCII."""

_HAN: Final = (
    "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af"
)
# Han, Hiragana, Katakana, Thai, Lao, Myanmar, Khmer, in ranges: `re` knows no scripts, and `regex`, which does,
# takes seven times as long, where reading is most of a search.
_UNSPACED: Final = (
    _HAN
    + "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    + "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u104e-\u109f\u1780-\u17d3\u17d7\u17dc"
)


def _ranges_of_marks() -> str:
    """Combining marks: they belong to the letter before them, and `re` takes them for no word's."""
    marks = [n for n in range(0x300, 0x20000) if unicodedata.category(chr(n))[0] == "M"]
    known = set(marks)
    firsts = [n for n in marks if n - 1 not in known]
    lasts = [n for n in marks if n + 1 not in known]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


_MARKS: Final = _ranges_of_marks()
_MARK: Final = re.compile(f"[{_MARKS}]")
_IN_WORDS: Final = rf"\w{_MARKS}"
# Underscores are word characters to `re`; `_parted` makes spaces of them first. Most texts have no marks, and are
# read many times as fast without them; those of plain ASCII need no expressions at all.
_WORD: Final = re.compile(f"[{_IN_WORDS}]+")
_BARE_WORD: Final = re.compile(r"\w+")
_ASCII: Final = bytes(n if chr(n).isalnum() and n < 128 else 32 for n in range(256))
_RUN: Final = re.compile(rf"[{_UNSPACED}]+")
_ONE_HAN: Final = re.compile(rf"[{_HAN}]")
_own = threading.local()


class Word(NamedTuple):
    """A word, folded, and where it stands in the text it was read from."""

    text: str
    start: int
    end: int


def normal(text: str) -> str:
    """The text in the form its words are read from and snippets are cut from: NFKC, case kept."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def fold(text: str) -> str:
    """The text as it is compared: normal, without case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", normal(text).casefold())


def read(folded: str) -> list[str]:
    """The words of a folded text, in order; a run of a script without spaces is one."""
    if folded.isascii():
        return _without_signs(folded).split()
    found = (_WORD if _MARK.search(folded) else _BARE_WORD).findall(_parted(folded))
    if not _RUN.search(folded):
        return found
    return [piece for word in found for piece in _pieces(word)]


def spaced(folded: str) -> str:
    """The words of a folded text as one text, in order, spaces before and behind each."""
    return f" {_without_signs(folded) if folded.isascii() else ' '.join(read(folded))} "


def beginning(spaced: str, letters: Iterable[str]) -> list[str]:
    """The words of a spaced text that begin with one of these letters, for a fraction of the work of reading all."""
    return [letter + rest.partition(" ")[0] for letter in letters for rest in spaced.split(f" {letter}")[1:]]


def following(spaced: str, word: str) -> Iterator[str]:
    """The next word at each place where a spaced text has this one; "" at its end."""
    for at in _places(spaced, word):
        yield spaced[at + len(word) + 1 :].lstrip().partition(" ")[0]


def locate(text: str, wanted: Collection[str] | None = None) -> list[Word]:
    """The words of a normal text with their places, in order; with `wanted`, those of them alone."""
    folded = fold(text)
    if wanted is not None and text.isascii():
        padded = spaced(folded)
        found = (Word(word, at, at + len(word)) for word in wanted for at in _places(padded, word))
        return sorted(found, key=lambda word: word.start)
    alike = len(folded) == len(text)  # then places in the one are places in the other
    runs = (_WORD if _MARK.search(folded) else _BARE_WORD).finditer(_parted(folded if alike else text))
    words = (word for match in runs for word in _located(match[0], match.start(), folded=alike))
    return [word for word in words if wanted is None or word.text in wanted]


def _places(spaced: str, word: str) -> Iterator[int]:
    """Where a spaced text has the word: the places in the folded text it was made of, where that is plain ASCII."""
    at = spaced.find(f" {word} ")
    while at >= 0:
        yield at
        at = spaced.find(f" {word} ", at + 1)


def _located(word: str, start: int, *, folded: bool) -> Iterator[Word]:
    for piece in _pieces(word):
        yield Word(piece if folded else fold(piece), start, start + len(piece))
        start += len(piece)


def phrase(words: Sequence[str]) -> re.Pattern[str]:
    """What finds these folded words, each whole and in this order, with no other between them, in a folded text."""
    parts, gap = [], rf"(?:_|[^{_IN_WORDS}])"
    for place, word in enumerate(words):
        run = unspaced(word)
        if place:
            parts.append(f"{gap}*" if run or unspaced(words[place - 1]) else f"{gap}+")
        edge = "" if run else rf"(?<![^\W_{_UNSPACED}])"
        parts.append(edge + re.escape(word))
    if not unspaced(words[-1]):
        parts.append(rf"(?:(?=[{_UNSPACED}])|(?!(?!_)[{_IN_WORDS}]))")
    return re.compile("".join(parts))


def unspaced(word: str) -> bool:
    """Whether a word as `read` gives it is a run of a script without spaces."""
    return _RUN.match(word) is not None


def terms(text: str, language: str) -> list[str]:
    """The distinct terms a text in that language is indexed by, at most MOST_TERMS, in the order of the text."""
    words = dict.fromkeys(read(fold(text)))
    spaced = [word for word in words if not unspaced(word)]
    stemmed = stems(spaced, language)
    runs = (term for word in words if unspaced(word) for term in _indexed(word))
    return list(dict.fromkeys((*stemmed, *runs)))[:MOST_TERMS]


def stems(words: Sequence[str], language: str) -> list[str]:
    """The stem of each folded word, in the order given."""
    cut = [word[:LONGEST_WORD] for word in words]
    if language not in STEMMERS:
        return cut
    stemmed: list[str] = _stemmer(STEMMERS[language]).stemWords(cut)
    return stemmed


def asked(run: str) -> list[str]:
    """The terms that a text with this run of a script without spaces must have."""
    return list(dict.fromkeys(_pairs(run))) or [run]


def stemmed_as(language: str) -> str:
    """The language whose stems stand for a person's ("pt" for "pt-BR"); PLAIN where there is no stemmer."""
    short = re.split(r"[-_]", language.strip().lower(), maxsplit=1)[0]
    return short if short in STEMMERS else PLAIN


def _without_signs(folded: str) -> str:
    """Plain ASCII with a space in place of each character that is in no word."""
    return folded.encode("ascii").translate(_ASCII).decode("ascii")


def _parted(text: str) -> str:
    return text.replace("_", " ")


def _pieces(word: str) -> Iterable[str]:
    """A word cut where a script without spaces begins or ends."""
    if word.isascii() or not _RUN.search(word):
        return (word,)
    edges = sorted({0, len(word), *(edge for match in _RUN.finditer(word) for edge in match.span())})
    return [word[start:end] for start, end in pairwise(edges)]


def _indexed(run: str) -> Iterator[str]:
    yield from _pairs(run) or (run,)
    yield from _ONE_HAN.findall(run)


def _pairs(run: str) -> list[str]:
    return [first + second for first, second in pairwise(run)]


def _stemmer(name: str) -> Any:
    """A stemmer keeps the word it works on in itself, so each thread has its own; it remembers no words."""
    held: dict[str, Any] = _own.__dict__
    if name not in held:
        held[name] = snowballstemmer.stemmer(name)
        held[name].maxCacheSize = 0
    return held[name]
