"""The rules of a customer's documents, SOUL and BIBLE."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, get_args
from uuid import UUID

Kind = Literal["soul", "bible"]
Author = Literal["customer", "advisor", "staff"]
KINDS: tuple[Kind, ...] = get_args(Kind)

REASON_CHARACTERS = 300


@dataclass(frozen=True)
class DocumentText:
    """A document as it stands. Version 0 is one that nobody has written yet."""

    kind: Kind
    version: int = 0
    text: str = ""
    updated_at: datetime | None = None
    updated_by: Author | None = None


@dataclass(frozen=True)
class Origin:
    """The message an edit of the advisor's answers: its conversation, and its number in there."""

    session: UUID
    message_seq: int


@dataclass(frozen=True)
class Version:
    """A document as it once stood, with who wrote it and why.

    `text` and `reason` are empty once the customer has taken them out, on `redacted_on`, and when they cannot be
    opened (`readable` is False). `changes` says in words what was done to a model's text before it was kept;
    `restores` is the version whose text it brought back.
    """

    id: UUID
    kind: Kind
    version: int
    text: str
    author: Author
    reason: str
    at: datetime
    origin: Origin | None = None
    restores: int | None = None
    changes: tuple[str, ...] = ()
    redacted_on: date | None = None
    readable: bool = True


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
            f"{kind.upper()} is {tokens:,} tokens long; at most {limit:,} fit. Nothing was saved yet: "
            f"shorten it by about {max(1, round((tokens - limit) * 0.75)):,} words."
        )
        self.tokens = tokens
        self.limit = limit


class NoVersion(Exception):
    """The document has no such version."""


class Redacted(Rejected):
    """The version has no text any more."""

    def __init__(self, version: int, day: date) -> None:
        super().__init__(
            f"You removed what version {version} said, on {day.isoformat()}; it is gone for good. "
            "Nothing was changed."
        )


class Standing(Rejected):
    """The version is what the advisor reads now, and so cannot lose its text."""

    def __init__(self, kind: Kind, version: int) -> None:
        super().__init__(
            f"Version {version} is what {kind.upper()} says now. Nothing was removed: first save the document without "
            "those words (or empty), then remove this version."
        )


def version_in(given: str) -> int:
    """The version a form says it was made on; -1, which never stands, for what is no number."""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else -1
