"""Prompt caches as the providers keep them: what is reported as read from a cache really was sent before."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from memberintel.lib import tokens

LIFETIME_SECONDS = 300.0
LOOK_BACK_BLOCKS = 20  # how far before a marker an entry written earlier is looked for
LEAST_TOKENS = 1024  # a shorter beginning is not kept
MOST_MARKERS = 4


@dataclass(frozen=True)
class Block:
    """One piece of a request in its order, without its marker; `marked` when it had one."""

    content: str
    marked: bool = False


@dataclass(frozen=True)
class Counted:
    """Tokens of a request: neither read nor written, written to the cache, read from it."""

    plain: int
    written: int
    read: int


class Prefixes:
    """The beginnings of requests seen lately, for each model."""

    def __init__(self, least: int = LEAST_TOKENS) -> None:
        self._least = least
        self._seen: dict[str, float] = {}

    def marked(self, model: str, blocks: Sequence[Block]) -> Counted:
        """As Anthropic counts: cached up to a marker, found again from a marker backwards."""
        marks = _marks(model, blocks)
        total = marks[-1].tokens if marks else 0
        places = [place for place, block in enumerate(blocks) if block.marked]
        read = max((self._found(marks, place) for place in places), default=0)
        last = max((marks[place].tokens for place in places), default=0)
        for place in places:
            self._keep(marks[place])
        end = last if last >= self._least else 0
        return Counted(total - max(end, read), max(0, end - read), read)

    def implicit(self, model: str, blocks: Sequence[Block]) -> Counted:
        """As Gemini counts: the longest beginning that an earlier request had too."""
        marks = _marks(model, blocks)
        read = max((mark.tokens for mark in marks if self._alive(mark)), default=0)
        for mark in marks:
            self._keep(mark)
        return Counted((marks[-1].tokens if marks else 0) - read, 0, read)

    def _found(self, marks: list[_Mark], place: int) -> int:
        near = marks[max(0, place - LOOK_BACK_BLOCKS) : place + 1]
        return max((mark.tokens for mark in near if self._alive(mark)), default=0)

    def _alive(self, mark: _Mark) -> bool:
        return time.monotonic() - self._seen.get(mark.digest, -LIFETIME_SECONDS) < LIFETIME_SECONDS

    def _keep(self, mark: _Mark) -> None:
        if mark.tokens >= self._least:
            self._seen[mark.digest] = time.monotonic()


@dataclass(frozen=True)
class _Mark:
    digest: str
    tokens: int


def _marks(model: str, blocks: Sequence[Block]) -> list[_Mark]:
    """For each block, the digest and the tokens of all up to and with it."""
    running, total, marks = hashlib.sha256(model.encode()), 0, []
    for block in blocks:
        running.update(b"\0" + block.content.encode("utf-8", "surrogatepass"))
        total += tokens.count(block.content)
        marks.append(_Mark(running.hexdigest(), total))
    return marks
