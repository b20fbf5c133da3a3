"""What several tenants mean alike, and which words of it may be shown. Numbers and words, no database.

Items come tenant by tenant, all of one before the next, so that counting tenants takes one number for each thing
counted. What is kept is bounded, however many items come.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import numpy as np
import regex
from numpy.typing import NDArray

from brain.domain.memory import Numbers

K: Final = 5
"""Staff see nothing that fewer tenants share. The functions of the database hold it too."""
ENTERS: Final = K + 1
"""How many tenants a phrase takes to come into a review: one of them leaving then changes nothing staff can see."""
MOST_LEADERS: Final = 2_000
MOST_GROUPS: Final = 200  # in a review, of each kind
MOST_COUNTED: Final = 5_000  # phrases of a group while they are counted
MOST_PHRASES: Final = 12  # of a group, in a review

type Phrase = tuple[str, ...]


def sampled(key: bytes, tenant: UUID, share: float) -> bool:
    """Whether the tenant is in the sample that this key draws. Who does not know the key cannot tell."""
    drawn = int.from_bytes(hmac.digest(key, tenant.bytes, "sha256")[:4])
    return drawn < share * 2**32


class Tally:
    """In how many tenants something was seen."""

    __slots__ = ("_last", "tenants")

    def __init__(self) -> None:
        self.tenants, self._last = 0, UUID(int=0)

    def see(self, tenant: UUID) -> None:
        """Seen in this tenant, perhaps again."""
        if tenant != self._last:
            self.tenants, self._last = self.tenants + 1, tenant


class Leaders:
    """Groups by meaning: an item belongs to the nearest leader that is near enough, or becomes one.

    With too many leaders those of the fewest tenants are forgotten.
    """

    def __init__(self, near: float, vectors: Iterable[Numbers] = ()) -> None:
        self._near = near
        self._vectors: NDArray[np.float32] = np.empty(
            (0, 0), np.float32
        )  # the first rows, one for each tally
        self._tallies: list[Tally] = []
        for vector in vectors:
            self._lead(_unit(vector))

    def __len__(self) -> int:
        return len(self._tallies)

    def nearest(self, vector: Numbers) -> int | None:
        """The number of the group the item belongs to, if it does to one."""
        return self._nearest(_unit(vector))

    def add(self, vector: Numbers, tenant: UUID) -> None:
        """An item of the tenant."""
        unit = _unit(vector)
        at = self._nearest(unit)
        if at is None:
            at = self._lead(unit)
        self._tallies[at].see(tenant)

    def of_many(self, least: int) -> list[Numbers]:
        """The leaders of groups of at least so many tenants, those of most first; MOST_GROUPS of them."""
        order = self._order()
        return [self._vectors[at] for at in order if self._tallies[at].tenants >= least][:MOST_GROUPS]

    def _nearest(self, unit: NDArray[np.float32]) -> int | None:
        if not self._tallies:
            return None
        cosines = self._vectors[: len(self)] @ unit
        best = int(cosines.argmax())
        return best if cosines[best] >= self._near else None

    def _lead(self, unit: NDArray[np.float32]) -> int:
        if len(self) >= MOST_LEADERS:
            self._forget()
        if len(self) >= len(self._vectors):
            grown = np.empty((max(64, 2 * len(self)), len(unit)), np.float32)
            grown[: len(self)] = self._vectors[: len(self)] if len(self) else 0
            self._vectors = grown
        self._vectors[len(self)] = unit
        self._tallies.append(Tally())
        return len(self) - 1

    def _forget(self) -> None:
        kept = sorted(self._order()[: MOST_LEADERS // 2])
        self._vectors[: len(kept)] = self._vectors[kept]
        self._tallies = [self._tallies[at] for at in kept]

    def _order(self) -> list[int]:
        return sorted(range(len(self)), key=lambda at: -self._tallies[at].tenants)


@dataclass
class Wording:
    """The phrases of a group while they are counted. With too many those of one tenant are forgotten; where that makes
    no room, new ones are not counted any more."""

    _seen: dict[Phrase, Tally] = field(default_factory=dict)
    _full: bool = False

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, phrases: Collection[Phrase], tenant: UUID) -> None:
        """The phrases of an item of the tenant."""
        for phrase in phrases:
            tally = self._seen.get(phrase)
            if tally is None:
                if len(self) >= MOST_COUNTED and not self._full:
                    self._seen = {each: tally for each, tally in self._seen.items() if tally.tenants > 1}
                    self._full = len(self) > MOST_COUNTED // 2
                if len(self) >= MOST_COUNTED:
                    continue
                tally = self._seen[phrase] = Tally()
            tally.see(tenant)

    def shown(self, least: int) -> list[Phrase]:
        """The phrases that stand in items of at least so many tenants, without those that are a part of a longer one;
        the longest first, then by their letters: the order tells no number."""
        common = [phrase for phrase, tally in self._seen.items() if tally.tenants >= least]
        whole = [one for one in common if not any(one != other and _within(one, other) for other in common)]
        return sorted(whole, key=lambda phrase: (-len(phrase), phrase))[:MOST_PHRASES]


def _within(part: Phrase, whole: Phrase) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def _unit(vector: Numbers) -> NDArray[np.float32]:
    values = np.asarray(vector, np.float32)
    length = float(np.linalg.norm(values))
    return values / np.float32(length) if length else values


_SPOKEN = regex.compile(r"[\p{L}\p{N}'’-]+")


def own_words(text: str, phrases: Iterable[str]) -> int:
    """How many words of a text are left when the phrases are taken out of it."""
    words = f" {' '.join(_SPOKEN.findall(text.lower()))} "
    for phrase in sorted(phrases, key=len, reverse=True):
        while f" {phrase} " in words:
            words = words.replace(f" {phrase} ", " ")
    return len(words.split())
