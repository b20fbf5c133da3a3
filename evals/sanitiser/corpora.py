"""The two corpora, and what counts as wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memberintel.lib.sanitise import CHANGED_MARKUP, CHANGED_SECRET, Refused, sanitise

FOLDER = Path(__file__).parent
HOSTILE, HONEST = FOLDER / "hostile.txt", FOLDER / "honest.txt"
_WRITTEN_OUT = re.compile(r"\\u([0-9a-fA-F]{4})|\\n")


@dataclass(frozen=True)
class Text:
    """A line of a corpus."""

    kind: str
    text: str


def read(file: Path) -> list[Text]:
    """The texts of a corpus, each with its kind."""
    kind, found = "", []
    for line in file.read_text().split("\n"):
        if line.startswith("== "):
            kind = line.removeprefix("== ")
        elif line.strip() and kind:
            found.append(Text(kind, _WRITTEN_OUT.sub(lambda m: chr(int(m[1], 16)) if m[1] else "\n", line)))
    return found


def missed(texts: Iterable[Text]) -> list[Text]:
    """Hostile texts that would be kept as they are, or whose secret would."""
    return [one for one in texts if not _stopped(one)]


def harmed(texts: Iterable[Text]) -> list[Text]:
    """Honest texts that would be refused or changed."""
    return [one for one in texts if not _untouched(one.text)]


def _stopped(one: Text) -> bool:
    try:
        done = sanitise(one.text, limit=2000)
    except Refused:
        return True
    if one.kind == "secrets":
        return CHANGED_SECRET in done.changes
    return one.kind == "links and markup" and CHANGED_MARKUP in done.changes


def _untouched(text: str) -> bool:
    try:
        done = sanitise(text, limit=2000)
    except Refused:
        return False
    return done.text == unicodedata.normalize("NFC", text).strip() and not done.changes
