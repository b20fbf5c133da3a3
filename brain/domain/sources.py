"""Where the parts of prompts come from: kinds of sources, whether one still stands, and where it can be read. Pure.

Settings name them as `PROMPT_SOURCES`: the kind a part carries, and the dotted path of a Source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Link:
    """A page that shows a source: its address, and what to call it."""

    address: str
    label: str


def _nowhere(_: Collection[UUID]) -> Mapping[UUID, Link]:
    return {}


@dataclass(frozen=True)
class Source:
    """A kind of source. Both functions run in the customer's scope, in one query for all ids they are given.

    `standing` gives those of the ids whose source is still there: neither deleted nor redacted. `links` gives
    where a person reads each of those that have a page.
    """

    standing: Callable[[Collection[UUID]], set[UUID]]
    links: Callable[[Collection[UUID]], Mapping[UUID, Link]] = _nowhere
