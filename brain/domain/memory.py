"""The rules of MEMORY: what an entry is, when two say the same, which are near a text, what may not be kept.

Pure: vectors and limits are handed in.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from brain.domain.documents import Author
from memberintel.lib import stems

MOST_RECALLED = 5
ECHO = 0.9  # the share of a text's word pairs that stand in another for it to be that other's words again
_EDGES = " \t\n.,;:!?…\"'“”‘’«»()-–—*•"
_WORD = re.compile(r"\w+")
_PREFIX = re.compile(r"^(?:[-*•]\s+)+")

type Numbers = Sequence[float] | NDArray[np.float32]
Closeness = Literal["very close", "close", "related"]


@dataclass(frozen=True)
class Vector:
    """A vector and the name of its embedder; only vectors of the same are compared."""

    values: Numbers
    embedder: str


@dataclass(frozen=True)
class Memory:
    """An entry as it stands, opened. When it cannot be opened, `readable` is false and its texts are empty."""

    id: UUID
    version: int
    text: str
    reason: str
    changes: tuple[str, ...]
    source: Author
    session_id: UUID | None
    message_seq: int | None
    created_at: datetime
    updated_at: datetime
    readable: bool = True


@dataclass(frozen=True)
class MemoryText:
    """What an entry said before."""

    version: int
    text: str
    reason: str
    source: Author
    at: datetime
    replaced_at: datetime


@dataclass(frozen=True)
class Thing[K]:
    """Something that may be near a text: its text, and its vector if it has one."""

    key: K
    text: str
    vector: Vector | None


@dataclass(frozen=True)
class Near[K]:
    """A thing that is near enough. `strength` runs from 0 (just at the threshold) to 1 (the same)."""

    key: K
    strength: float

    @property
    def words(self) -> Closeness:
        """The strength in words for a person."""
        if self.strength >= 0.5:
            return "very close"
        return "close" if self.strength >= 0.2 else "related"


@dataclass(frozen=True)
class Thresholds:
    """From which cosine on a text counts as near: by embedder, else `other`; `words` where two texts have no vectors
    of one embedder and are compared by their word stems."""

    by_embedder: Mapping[str, float]
    other: float
    words: float

    def of(self, embedder: str) -> float:
        """The threshold of an embedder."""
        return self.by_embedder.get(embedder, self.other)


def nearest[K](
    text: str, vector: Vector | None, things: Iterable[Thing[K]], thresholds: Thresholds, *, most: int
) -> list[Near[K]]:
    """At most `most` things near the text, the nearest first; equal ones keep their order.

    A thing without a vector of the text's embedder is compared by word stems, so that none is out of reach while
    embedders change or are away.
    """
    listed = list(things)
    same = [thing for thing in listed if vector and thing.vector and thing.vector.embedder == vector.embedder]
    scored: list[tuple[float, Thing[K]]] = []
    if vector and same:
        cosines = _cosines(vector.values, [thing.vector.values for thing in same if thing.vector])
        line = thresholds.of(vector.embedder)
        scored += [(_strength(cosine, line), thing) for cosine, thing in zip(cosines, same, strict=True)]
    compared = {id(thing) for thing in same}
    rest = [thing for thing in listed if id(thing) not in compared]
    if rest:
        cosines = _cosines(stems.vector(text), [stems.vector(thing.text) for thing in rest])
        scored += [
            (_strength(cosine, thresholds.words), thing) for cosine, thing in zip(cosines, rest, strict=True)
        ]
    place = {id(thing): number for number, thing in enumerate(listed)}
    found = sorted(
        ((strength, thing) for strength, thing in scored if strength >= 0),
        key=lambda pair: (-pair[0], place[id(pair[1])]),
    )
    return [Near(thing.key, strength) for strength, thing in found[:most]]


def normal(text: str) -> str:
    """What two texts must share to be the same entry: letters without case, one space between words, no bullet and
    no punctuation around them."""
    flat = " ".join(_PREFIX.sub("", unicodedata.normalize("NFKC", text).casefold().strip()).split())
    return unicodedata.normalize("NFKC", flat.strip(_EDGES))


def echoes(text: str, injected: Iterable[str]) -> bool:
    """Whether a text is what the model was shown anyway, in the same words or nearly so.

    A single word that is new (another figure, a "no longer") makes it a statement of its own.
    """
    words = _WORD.findall(normal(text))
    pairs = list(pairwise(words))
    for shown in injected:
        known = _WORD.findall(normal(shown))
        if not words or not set(words) <= set(known):
            continue
        if not pairs:
            return True
        found = set(pairwise(known))
        if sum(pair in found for pair in pairs) / len(pairs) >= ECHO:
            return True
    return False


def _cosines(one: Numbers, others: Sequence[Numbers]) -> list[float]:
    left, right = np.asarray(one, np.float32), np.asarray(others, np.float32)
    lengths = np.linalg.norm(right, axis=1) * np.linalg.norm(left)
    products: list[float] = np.divide(
        right @ left, lengths, out=np.zeros(len(right), np.float32), where=lengths > 0
    ).tolist()
    return products


def _strength(cosine: float, line: float) -> float:
    return (cosine - line) / (1 - line)


# --- what is refused ---------------------------------------------------------------------------------------


class NotKept(Exception):
    """The entry was not written; nothing changed. The message says why and what to do, to a person."""

    code = "not_kept"


class Empty(NotKept):
    """There is nothing to keep."""

    code = "empty"

    def __init__(self) -> None:
        super().__init__("There is nothing to keep. Write a sentence first.")


class TooLong(NotKept):
    """More than an entry may have; `length` and `limit` are characters."""

    code = "too_long"

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            f"This has {length:,} characters; at most {limit:,} fit. One entry holds one insight: split or shorten it."
        )
        self.length, self.limit = length, limit


class NotFound(NotKept):
    """No such entry for this customer."""

    code = "not_found"

    def __init__(self) -> None:
        super().__init__("There is no such entry; it may have been deleted meanwhile.")


class Known(NotKept):
    """An entry says just this already: `entry`."""

    code = "known"

    def __init__(self, entry: Memory) -> None:
        super().__init__("Another entry says just this already. Nothing was saved twice.")
        self.entry = entry


class Changed(NotKept):
    """The entry was changed since whoever writes has seen it; `fresh` is what it says now."""

    code = "changed"

    def __init__(self, fresh: Memory) -> None:
        super().__init__(
            "This entry was changed in the meantime. Nothing was saved yet: compare and save again."
        )
        self.fresh = fresh


class Full(NotKept):
    """All places are taken: one of `entries` must be replaced, or deleted first."""

    code = "full"

    def __init__(self, entries: Sequence[Memory], cap: int) -> None:
        super().__init__(
            f"All {cap} places are taken. Replace one of the entries, or delete one first; nothing was saved."
            if len(entries) <= cap
            else f"{len(entries)} entries are kept and the plan has room for {cap}. Nothing was deleted, but a new one "
            "can only replace another."
        )
        self.entries, self.cap = tuple(entries), cap


class Similar(NotKept):
    """Entries that say something like it: whoever writes decides whether to replace one or to keep both."""

    code = "similar"

    def __init__(self, entries: Sequence[Memory]) -> None:
        super().__init__(
            "Something like this is kept already. Replace that entry if this corrects it, or keep both."
        )
        self.entries = tuple(entries)
