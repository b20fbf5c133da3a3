"""The rules of a customer's documents, SOUL and BIBLE."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Kind = Literal["soul", "bible"]
Author = Literal["customer", "advisor", "staff"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class DocumentText:
    """A document as it stands. Version 0 is one that nobody has written yet."""

    kind: Kind
    version: int = 0
    text: str = ""
    updated_at: datetime | None = None
    updated_by: Author | None = None


@dataclass(frozen=True)
class Version:
    """A document as it once stood, with who wrote it and why."""

    kind: Kind
    version: int
    text: str
    author: Author
    reason: str
    at: datetime


class Rejected(Exception):
    """The document was not saved. The message says why, to a person."""


class Stale(Rejected):
    """Somebody saved another version since the one this edit was made on; `fresh` is what stands now."""

    def __init__(self, fresh: DocumentText) -> None:
        super().__init__(
            f"This document was changed in the meantime (version {fresh.version} is the newest). "
            "Nothing was saved yet: compare the two texts and save again."
        )
        self.fresh = fresh


class TooLong(Rejected):
    """The text is over the size cap of its kind; both numbers are tokens."""

    def __init__(self, kind: Kind, tokens: int, limit: int) -> None:
        super().__init__(
            f"{kind.upper()} is {tokens:,} tokens long; at most {limit:,} fit. "
            f"Shorten it by about {max(1, round((tokens - limit) * 0.75)):,} words."
        )
        self.tokens = tokens
        self.limit = limit
