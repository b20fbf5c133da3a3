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
        self._vectors: list[NDArray[np.float32]] = [_unit(vector) for vector in vectors]
        self._matrix: NDArray[np.float32] | None = None
        self._tallies = [Tally() for _ in self._vectors]

    def nearest(self, vector: Numbers) -> int | None:
        """The number of the group the item belongs to, if it does to one."""
        if not self._vectors:
            return None
        if self._matrix is None or len(self._matrix) != len(self._vectors):
            self._matrix = np.stack(self._vectors)
        cosines = self._matrix @ _unit(vector)
        best = int(cosines.argmax())
        return best if cosines[best] >= self._near else None

    def add(self, vector: Numbers, tenant: UUID) -> None:
        """An item of the tenant."""
        at = self.nearest(vector)
        if at is None:
            if len(self._vectors) >= MOST_LEADERS:
                self._forget()
            at = len(self._vectors)
            self._vectors.append(_unit(vector))
            self._tallies.append(Tally())
        self._tallies[at].see(tenant)

    def of_many(self, least: int) -> list[Numbers]:
        """The leaders of groups of at least so many tenants, those of most first; MOST_GROUPS of them."""
        order = self._order()
        return [self._vectors[at].tolist() for at in order if self._tallies[at].tenants >= least][
            :MOST_GROUPS
        ]

    def _forget(self) -> None:
        kept = sorted(self._order()[: MOST_LEADERS // 2])
        self._vectors = [self._vectors[at] for at in kept]
        self._tallies = [self._tallies[at] for at in kept]
        self._matrix = None

    def _order(self) -> list[int]:
        return sorted(range(len(self._vectors)), key=lambda at: -self._tallies[at].tenants)


@dataclass
class Wording:
    """The phrases of a group while they are counted."""

    _seen: dict[Phrase, Tally] = field(default_factory=dict)

    def add(self, phrases: Collection[Phrase], tenant: UUID) -> None:
        """The phrases of an item of the tenant."""
        for phrase in phrases:
            if phrase not in self._seen:
                if len(self._seen) >= MOST_COUNTED:
                    self._seen = {each: tally for each, tally in self._seen.items() if tally.tenants > 1}
                if len(self._seen) >= MOST_COUNTED:
                    continue
                self._seen[phrase] = Tally()
            self._seen[phrase].see(tenant)

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
