"""The title a session has until a better one is made: the first words of its first message."""

from __future__ import annotations

from typing import Final

import regex

from sessions.domain import marks

UNTITLED: Final = "New conversation"
WORDS: Final = 8
CHARACTERS: Final = 60

_MARKUP: Final = regex.compile(r"^[\s#>*_`~\-–—]+")


def from_first_words(text: str) -> str:
    """At most eight words and sixty characters of the text, on one line; `UNTITLED` if it has none."""
    words = _MARKUP.sub("", text[:2000]).split()
    first = " ".join(words[:WORDS])
    cut = marks.one_line(first, CHARACTERS)
    if cut == first and len(words) > WORDS:
        return first.rstrip(".,;:!?") + "…"
    return cut or UNTITLED
