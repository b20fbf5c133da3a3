"""Which sentences are about the same things: word stems, compared."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

import snowballstemmer

VECTOR_SIZE = 256
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_LEAD = re.compile(r"^[\s#>*•\-–—]+")
_stemming = threading.Lock()

# Words that say nothing about what a sentence is about.
_EMPTY = frozenset(
    """a about after again all also am an and any are as at be because been before being but by can could did do
    does doing done don dont for from get gets getting go going gonna good got great had has have having he help her
    here hers hey hi him his how i if in into is it its just know let lets like ll make me more most much my need no
    not now of on one or other our out over please re really s same say see she should so some still such sure t take
    tell than thank thanks that the their them then there these they thing things think this those to today too up
    us ve very want was way we well were what when where which who why will with would yes you your yours
    hello advisor maybe ok okay something anything last time""".split()  # noqa: SIM905 - a text reads better than a list of 170 quoted words
)


@dataclass(frozen=True)
class Sentence:
    """A sentence and where it stands, in words for the customer."""

    text: str
    source: str


def sentences(text: str) -> list[str]:
    """The text's sentences, list marks and heading marks taken off."""
    parts = (_LEAD.sub("", part).strip() for part in _SENTENCE_END.split(text))
    return [part for part in parts if part]


def stems(text: str) -> list[str]:
    """The stems of the words that carry a meaning, in order, with repetitions."""
    words = [word for word in _WORD.findall(text.lower()) if word not in _EMPTY]
    words = [word for word in words if len(word) > 2 or word.isdigit() or not word.isascii()]
    with _stemming:  # the stemmer keeps its word in itself
        stemmed: list[str] = _stemmer().stemWords(words)
    return stemmed


def related(question: str, candidates: Sequence[Sentence], most: int) -> list[Sentence]:
    """At most `most` candidates that share stems with the question, the closest first.

    A stem counts the less the more of the candidates have it, so that the word every sentence has decides
    nothing. Equal ones keep their order.
    """
    asked = set(stems(question))
    if not asked:
        return []
    shared = [asked & set(stems(candidate.text)) for candidate in candidates]
    spread = Counter(stem for found in shared for stem in found)
    scores = [sum(1 / spread[stem] for stem in found) for found in shared]
    ranked = sorted(range(len(candidates)), key=lambda place: (-scores[place], place))
    return [candidates[place] for place in ranked[:most] if scores[place] > 0]


def vector(text: str) -> tuple[float, ...]:
    """A unit vector of hashed stems (all zero for a text without any)."""
    sums = [0.0] * VECTOR_SIZE
    for stem, times in Counter(stems(text)).items():
        digest = blake2b(stem.encode("utf-8", "replace"), digest_size=8).digest()
        sign = 1.0 if digest[0] & 1 else -1.0
        sums[int.from_bytes(digest[1:5]) % VECTOR_SIZE] += sign * (1 + math.log(times))
    length = math.sqrt(sum(value * value for value in sums))
    return tuple(value / length for value in sums) if length else tuple(sums)


@cache
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")
