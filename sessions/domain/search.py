"""Searching opened texts: what is asked, how well a text answers it, and the part of it worth showing.

The score of a text is the sum of
  * term frequency: the mean of 1 + ln(times it occurs) over the words asked for;
  * phrase bonus: the share of neighbouring words asked for that are neighbours in the text too, 0 to 1;
  * recency: 1 for now, half for each 30 days of age.
A text that lacks a word, or a quoted phrase, is no hit, whatever the index said. Equal scores: newest first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from memberintel.lib import terms
from sessions.domain import events as kinds

TEXTS: Final[Mapping[str, str]] = {
    kinds.USER_MESSAGE: "text",
    kinds.ASSISTANT_TURN: "text",
    kinds.COMPACTION_APPLIED: "summary",
}
"""The kinds of events that can be found, each with the part of its content that is read."""

MOST_WORDS: Final = 32
"""Distinct words of a query that count."""
MOST_CHARACTERS: Final = 2_000
"""Characters of a query that are read."""
MOST_LETTERS: Final = 6
"""Letters that the stems of a query begin with, up to which picking words by them is quicker than reading all."""
SNIPPET: Final = 240
"""Characters of a snippet, about."""
HALF_LIFE: Final = timedelta(days=30).total_seconds()

_QUOTED: Final = re.compile(r'["“”„«»]([^"“”„«»]+)["“”„«»]')
_SPACE: Final = re.compile(r"\s+")


def text_of(kind: str, content: Mapping[str, Any]) -> str:
    """The searchable text of an event of that kind, "" when it has none."""
    return str(content.get(TEXTS.get(kind, "")) or "")


# --- what is asked ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """The distinct words asked for, folded, in order; quoted phrases as words; whether it was cut for length."""

    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    cut: bool = False

    def runs(self) -> tuple[tuple[int, str], ...]:
        """Those of its words that are runs of a script without spaces, with their places."""
        return tuple((place, word) for place, word in enumerate(self.words) if terms.unspaced(word))

    def alternatives(self, languages: Collection[str]) -> list[list[str]]:
        """What the index must have: of each list at least one term. A word has a stem in every language."""
        found: list[list[str]] = []
        for word in self.words:
            if terms.unspaced(word):
                found += [[term] for term in terms.asked(word)[:MOST_WORDS]]
            else:
                found.append(list(dict.fromkeys(terms.stems([word], name)[0] for name in languages)))
        return found


def parse(text: str) -> Query:
    """Read what a person typed. Quotes, straight or curly, make a phrase; nothing else has a meaning of its own."""
    folded = terms.fold(text[:MOST_CHARACTERS])
    words = list(dict.fromkeys(terms.read(folded)))
    kept = set(words[:MOST_WORDS])
    quoted = (tuple(terms.read(phrase)) for phrase in _QUOTED.findall(folded))
    phrases = tuple(dict.fromkeys(phrase for phrase in quoted if phrase and kept.issuperset(phrase)))
    cut = len(words) > MOST_WORDS or len(text) > MOST_CHARACTERS
    return Query(tuple(words[:MOST_WORDS]), phrases, cut)


# --- how well a text answers it --------------------------------------------------------------------------


class Match(NamedTuple):
    """A text that answers: its place in the list given, and its score."""

    place: int
    score: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Texts read for a query, made by `read`: which answer it how well, and what of each is worth showing.

    `forms` are the words of the texts that stand for words of the query, with the places of those in it; `found` the
    forms each text has, `times` how often it has each word of the query.
    """

    query: Query
    texts: Sequence[str]
    spaced: Sequence[str]
    forms: Mapping[str, tuple[int, ...]]
    found: Sequence[Sequence[str]]
    times: Sequence[Sequence[int]]

    def rank(self, ages: Sequence[float]) -> list[Match]:
        """The texts that answer, the best first. The texts stand newest first; `ages` are theirs in seconds."""
        found = []
        for place, age in enumerate(ages):
            if relevance := self._relevance(place):
                found.append(Match(place, relevance + 0.5 ** (max(0.0, age) / HALF_LIFE)))
        return sorted(found, key=lambda match: (-match.score, match.place))

    def snippet(self, place: int) -> tuple[Piece, ...]:
        """The stretch of a text that has most of what was asked for, in pieces, its white space made single."""
        text = _SPACE.sub(" ", terms.normal(self.texts[place])).strip()
        return _pieces(text, self._marks(text))

    def _relevance(self, place: int) -> float:
        """Term frequency and phrase bonus of a text; 0 when it is no hit."""
        times = self.times[place]
        if not times or not all(times):
            return 0.0
        if not all(_has(self.texts[place], self.spaced[place], phrase) for phrase in self.query.phrases):
            return 0.0
        often = len(times) + sum(map(math.log, times))
        return often / len(times) + self._neighbours(place)

    def _neighbours(self, place: int) -> float:
        most = len(self.query.words) - 1
        if most < 1:
            return 0.0
        forms, spaced = self.forms, self.spaced[place]
        met = {
            asked
            for word in set(self.found[place])
            for asked in forms[word]
            if asked < most
            and any(asked + 1 in forms.get(next_word, ()) for next_word in terms.following(spaced, word))
        }
        return len(met) / most

    def _marks(self, text: str) -> list[_Mark]:
        runs = self.query.runs()
        wanted = None if runs else self.forms.keys()
        marks: list[_Mark] = []
        for word in terms.locate(text, wanted):
            if word.text in self.forms:
                marks.append((word.start, word.end, self.forms[word.text][0]))
            elif runs and terms.unspaced(word.text):
                marks += _in_run(word, runs)
        return sorted(marks)


def read(query: Query, texts: Sequence[str], languages: Collection[str]) -> Reading:
    """Read texts for a query; its words are taken in each of the languages the texts are indexed in.

    In plain ASCII a stem begins as the words it stands for, save in a few languages: of such a text only the words that
    begin as one of the stems are looked at.
    """
    stems = [_stems(query, language) for language in languages]
    letters = {stem[:1] for each in stems for stem in each.places}
    few = len(letters) <= MOST_LETTERS and terms.BEGIN_OTHERWISE.isdisjoint(languages)
    spaced = [terms.spaced(terms.fold(text)) for text in texts]
    words = [terms.beginning(text, letters) if few and text.isascii() else text.split() for text in spaced]
    forms = _forms(stems, set().union(*words))
    found = [[word for word in each if word in forms] for each in words]
    runs, times = query.runs(), []
    for text, own in zip(texts, found, strict=True):
        often = [0] * len(query.words)
        for word in own:
            for place in forms[word]:
                often[place] += 1
        for place, run in runs:
            often[place] = terms.fold(text).count(run)
        times.append(often)
    return Reading(query, texts, spaced, forms, found, times)


@dataclass(frozen=True, slots=True)
class _Stems:
    """The stems of the query's words in a language, with the places of those in it."""

    language: str
    places: Mapping[str, set[int]]


def _forms(stems: Iterable[_Stems], vocabulary: Collection[str]) -> dict[str, tuple[int, ...]]:
    """The words of the texts that stand for words of the query, with the places of those in it."""
    known, found = list(vocabulary), dict[str, set[int]]()
    for each in stems:
        for word, stem in zip(known, terms.stems(known, each.language), strict=True):
            if stem in each.places:
                found.setdefault(word, set()).update(each.places[stem])
    return {word: tuple(sorted(places)) for word, places in found.items()}


def _stems(query: Query, language: str) -> _Stems:
    asked = {place: word for place, word in enumerate(query.words) if not terms.unspaced(word)}
    places: dict[str, set[int]] = {}
    for place, stem in zip(asked, terms.stems(list(asked.values()), language), strict=True):
        places.setdefault(stem, set()).add(place)
    return _Stems(language, places)


def _has(text: str, spaced: str, phrase: Sequence[str]) -> bool:
    """Whether a text has these words in this order, with no other between them."""
    if any(map(terms.unspaced, phrase)):
        return terms.phrase(phrase).search(terms.fold(text)) is not None
    if not all(second in terms.following(spaced, first) for first, second in pairwise(phrase)):
        return False  # nearly always, and without reading all words
    return f" {' '.join(phrase)} " in f" {' '.join(spaced.split())} "


# --- what of it to show ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a snippet: plain, or `found`, what was asked for. Text, to be escaped wherever it is shown."""

    text: str
    found: bool = False


type _Mark = tuple[int, int, int]  # start, end, place of the word in the query


def _pieces(text: str, marks: Sequence[_Mark]) -> tuple[Piece, ...]:
    start, end = _stretch(text, marks)
    pieces, at = [Piece("…")] if start else [], start
    for first, last, _ in marks:
        if at <= first and last <= end:
            pieces += [Piece(text[at:first]), Piece(text[first:last], found=True)]
            at = last
    pieces += [Piece(text[at:end]), Piece("…" if end < len(text) else "")]
    return tuple(piece for piece in pieces if piece.text)


def _in_run(word: terms.Word, runs: Sequence[tuple[int, str]]) -> list[_Mark]:
    return [
        (word.start + match.start(), word.start + match.end(), place)
        for place, run in runs
        for match in re.finditer(re.escape(run), word.text)
    ]


def _stretch(text: str, marks: Sequence[_Mark]) -> tuple[int, int]:
    """Where the snippet starts and ends: around the marks, within its length, with most of the query's words."""
    if len(text) <= SNIPPET:
        return 0, len(text)
    best, most, last = 0, 0, 0
    places: Counter[int] = Counter()
    for first, (start, _, place) in enumerate(marks):
        while last < len(marks) and marks[last][1] <= start + SNIPPET * 3 // 4:
            places[marks[last][2]] += 1
            last += 1
        if len(+places) > most:
            best, most = first, len(+places)
        places[place] -= 1
    middle = marks[best][0] if marks else 0
    start = max(0, min(middle - SNIPPET // 4, len(text) - SNIPPET))
    return _to_space(text, start, 1), _to_space(text, min(len(text), start + SNIPPET), -1)


def _to_space(text: str, at: int, step: int) -> int:
    """The edge of a word near `at`, inwards; `at` itself where words are long."""
    if at in (0, len(text)):
        return at
    near = range(at, at + 20 * step, step)
    return next((place + (step > 0) for place in near if text[place] == " "), at)
