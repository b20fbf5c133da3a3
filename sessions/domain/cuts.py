"""Where a long log may be cut into pages: before the first event of a turn, never inside one. Pure.

Turns follow one another, since a session has one at a time and only its last can be tried again; what belongs to no
turn (a summary, a prompt made anew, the close) stays with the turn before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sessions.domain import events as kinds


@dataclass(frozen=True, slots=True)
class Mark:
    """An event without its content: enough to see where turns begin."""

    seq: int
    kind: str
    turn: UUID | None


@dataclass(frozen=True, slots=True)
class Span:
    """The events `first` to `last`, both inclusive, of a log that ends at `end`."""

    first: int
    last: int
    end: int

    @property
    def earlier(self) -> int | None:
        """What to ask for as `before` to get the page before this one; None at the beginning."""
        return self.first if self.first > 1 else None

    @property
    def later(self) -> int | None:
        """What to ask for as `after` to get the page after this one; None at the end."""
        return self.last if self.last < self.end else None


type Marks = Callable[[int, int], Sequence[Mark]]
"""The marks of the events from one number to another, both inclusive, in order."""


def cuts(marks: Sequence[Mark]) -> list[int]:
    """The numbers of the events before which these may be cut; of the first one only what it tells by itself."""
    found: list[int] = []
    turn, known = None, False
    for mark in marks:
        if mark.turn is None:
            continue
        begins = mark.kind == kinds.USER_MESSAGE or (known and mark.turn != turn)
        if begins and mark.kind in kinds.TURN_KINDS:
            found.append(mark.seq)
        turn, known = mark.turn, True
    return found


def around(marks: Marks, *, end: int, seq: int, size: int) -> Span:
    """About `size` events with number `seq` (kept inside the log) somewhere in their middle."""
    wanted, half = min(max(seq, 1), end), max(1, size // 2)
    first = _back(marks, wanted, half)
    return Span(first, _forth(marks, max(first, wanted - half), wanted, half, end), end)


def before(marks: Marks, *, end: int, seq: int, size: int) -> Span:
    """About `size` events up to the turn that has number `seq`; none when that is the first."""
    last = _begin(marks, min(seq, end), size) - 1
    return Span(_back(marks, last, size) if last else 1, last, end)


def after(marks: Marks, *, end: int, seq: int, size: int) -> Span:
    """About `size` events from the one after number `seq`, or from where its turn begins; none at the end."""
    if seq >= end:
        return Span(end + 1, end, end)
    first = _begin(marks, max(seq, 0) + 1, size)
    return Span(first, _forth(marks, first, max(first, seq + 1), size, end), end)


def newest(marks: Marks, *, end: int, size: int) -> Span:
    """About `size` events at the end."""
    return Span(_back(marks, end, size), end, end)


def _begin(marks: Marks, seq: int, size: int) -> int:
    """Where the turn begins that has number `seq`."""
    while True:
        first = max(1, seq - size + 1)
        if found := cuts(marks(first, seq)):
            return found[-1]
        if first == 1:
            return 1
        size *= 4


def _back(marks: Marks, last: int, size: int) -> int:
    """The first cut among the `size` events up to `last`; further back when a turn is longer than that."""
    while True:
        first = max(1, last - size + 1)
        if first == 1:
            return 1
        if found := cuts(marks(first, last)):
            return found[0]
        size *= 4


def _forth(marks: Marks, known: int, held: int, size: int, end: int) -> int:
    """The last event before the last cut within `size` after `held`; further when a turn is longer than that.

    Marks are read from `known` on, so that what goes on past `held` is seen to go on.
    """
    while True:
        last = held + size
        if last >= end:
            return end
        if found := [cut for cut in cuts(marks(known, last)) if cut > held]:
            return found[-1] - 1
        size *= 4
