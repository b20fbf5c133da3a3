"""What changed between two texts: line by line, and word by word within the lines that changed. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Sign = Literal["same", "removed", "added"]

MOST_PAIRS = 20_000
"""Pairs of equal words or lines up to which texts are matched, which may take the cube of their number."""
COMMON_PAIRS = 25

_WORD = re.compile(r"\w+[^\S\n]*|[^\w\s][^\S\n]*|\n|[^\S\n]+")


@dataclass(frozen=True)
class Piece:
    """A stretch within a line."""

    sign: Sign
    text: str


@dataclass(frozen=True)
class Line:
    """A line of either text or of both; its pieces together are the line."""

    sign: Sign
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece.text for piece in self.pieces)


def diff(before: str, after: str) -> list[Line]:
    """The lines of both texts in order, removed ones before those that took their place.

    Without the added lines it is `before`, without the removed ones `after`.
    """
    old, new = _lines(before), _lines(after)
    found: list[Line] = []
    for tag, a, b, c, d in _steps(old, new):
        if tag == "equal":
            found += [Line("same", (Piece("same", line),)) for line in old[a:b]]
        else:
            found += _changed(old[a:b], new[c:d])
    return found


def _changed(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    """Lines that gave way to others, each with the words that went or came marked."""
    left, right = _words(old), _words(new)
    gone: list[Piece] = []
    come: list[Piece] = []
    for tag, a, b, c, d in _steps(left, right):
        same = tag == "equal"
        gone.append(Piece("same" if same else "removed", "".join(left[a:b])))
        come.append(Piece("same" if same else "added", "".join(right[c:d])))
    return [*_cut(gone, "removed", len(old)), *_cut(come, "added", len(new))]


def _cut(pieces: Sequence[Piece], sign: Sign, count: int) -> list[Line]:
    """The pieces as `count` lines again."""
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        first, *more = piece.text.split("\n")
        lines[-1].append(Piece(piece.sign, first))
        lines += [[Piece(piece.sign, text)] for text in more]
    return [Line(sign, tuple(piece for piece in line if piece.text)) for line in lines[:count]]


def _steps(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    inner = _matched(old[start : len(old) - end], new[start : len(new) - end])
    steps = [("equal", 0, start, 0, start)] if start else []
    steps += [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in inner]
    if end:
        steps.append(("equal", len(old) - end, len(old), len(new) - end, len(new)))
    return steps


def _matched(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    counted, other = Counter(old), Counter(new)
    pairs = {each: counted[each] * other[each] for each in counted}
    common = set[str]()
    if sum(pairs.values()) > MOST_PAIRS:  # then only what is rare is looked for, and what stands next to it
        common = {each for each, count in pairs.items() if count > COMMON_PAIRS}
    if sum(count for each, count in pairs.items() if each not in common) > MOST_PAIRS:
        return [("replace", 0, len(old), 0, len(new))]
    return list(SequenceMatcher(common.__contains__, old, new, autojunk=False).get_opcodes())


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _words(lines: Sequence[str]) -> list[str]:
    return _WORD.findall("\n".join(lines))
