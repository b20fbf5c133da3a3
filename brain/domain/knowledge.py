"""Articles of shared knowledge as Markdown files: a front matter with title and topic, then the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from memberintel.lib.text import clean

LONGEST = {"title": 120, "topic": 60, "text": 4_000}
MOST_RECALLED = 3
_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<text>.*)\Z", re.DOTALL)
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class Article:
    """A published article."""

    id: UUID
    slug: str
    title: str
    topic: str
    text: str
    published_at: datetime


@dataclass(frozen=True)
class Written:
    """An article as a file has it."""

    slug: str
    title: str
    topic: str
    text: str

    def digest(self) -> str:
        """Tells whether it says the same."""
        return sha256("\0".join((self.title, self.topic, self.text)).encode()).hexdigest()


class NotAnArticle(ValueError):
    """The file has another form; the message says what is wrong."""


def read(name: str, raw: bytes) -> Written:
    """The article in a file `name` (without its ending, which is its slug). NotAnArticle."""
    try:
        text = clean(raw.decode())
    except UnicodeDecodeError:
        raise NotAnArticle(f"{name}: is not UTF-8") from None
    if len(name) > 80 or not _SLUG.fullmatch(name):
        raise NotAnArticle(f"{name}: a name has small letters, digits and single hyphens, 80 at most")
    found = _FRONT.match(text)
    if found is None:
        raise NotAnArticle(f"{name}: begins with '---', title and topic, and '---' again")
    front = dict(line.split(":", 1) for line in found["front"].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in front.items()} | {"text": found["text"].strip()}
    for key, longest in LONGEST.items():
        if not fields.get(key):
            raise NotAnArticle(f"{name}: has no {key}")
        if len(fields[key]) > longest:
            raise NotAnArticle(
                f"{name}: its {key} has {len(fields[key]):,} characters; at most {longest:,} fit"
            )
    return Written(name, fields["title"], fields["topic"], fields["text"])
