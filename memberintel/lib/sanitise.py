"""What a model wrote, made fit to be kept and read by a model again. The one way into the brain and the notes.

What a person wrote does not come through here: it is never refused and never changed, only escaped.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import regex

from memberintel.lib import machinery, masking
from memberintel.lib.text import shorten, visible

_DROPPED_WITH_CONTENT = regex.compile(
    r"(?is)<(script|style|template|noscript)\b[^>]*>.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)"
)
_TAG = regex.compile(
    r"(?i)</?(?:a|abbr|article|aside|audio|b|base|blockquote|body|br|button|canvas|center|code|dd|del|details|div|dl"
    r"|dt|em|embed|fieldset|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd"
    r"|label|li|link|main|mark|math|meta|nav|noscript|object|ol|option|p|picture|pre|q|s|samp|script|section|select"
    r"|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead"
    r"|title|tr|tt|u|ul|var|video)(?:\s[^<>]*|\s*/)?>"
)
_ANGLE = regex.compile(r"<(?=[a-zA-Z/!?|])")

CHANGED_HIDDEN = "hidden characters removed"
CHANGED_MARKUP = "markup removed"
CHANGED_SECRET = "secrets masked"  # noqa: S105 (a word for people)
CHANGED_LENGTH = "shortened"
_ROUNDS = 12  # each pass can uncover work for the next; honest text settles in one


class Refused(Exception):
    """The text may not be kept; `reason` is the end of the sentence "refused because …"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Sanitised:
    """What may be kept, and what was done to it, in words for a person."""

    text: str
    changes: tuple[str, ...] = ()


def sanitise(text: str, *, limit: int) -> Sanitised:
    """Text of a model as it may be kept, at most `limit` characters. Raises Refused.

    Hidden characters go, markup is neutralised, secrets are masked. Text that speaks to the machinery is
    refused whole, because a part of it may still work. Applied to its own result it changes nothing.
    """
    most = 4 * limit + 1000  # what lies beyond is cut in any case, and need not be read
    changes: list[str] = [CHANGED_LENGTH] if len(text) > most else []
    text = text[:most]
    for _ in range(_ROUNDS):
        if reason := machinery.refusal(text):
            raise Refused(reason)
        after, done = _pass(text, limit)
        changes += done
        if after == text:
            return Sanitised(text, tuple(dict.fromkeys(changes)))
        text = after
    raise Refused("it keeps changing when cleaned")


def kept(text: str, *, limit: int) -> str:
    """The sanitised text, empty when it is refused: for one item among many, which goes alone."""
    try:
        return sanitise(text, limit=limit).text
    except Refused:
        return ""


def _pass(text: str, limit: int) -> tuple[str, list[str]]:
    steps = (
        (CHANGED_HIDDEN, visible),
        (CHANGED_MARKUP, _neutralised),
        (CHANGED_SECRET, masking.mask),
        (CHANGED_LENGTH, lambda value: shorten(value, limit)),
    )
    changes = []
    for name, step in steps:
        after = step(text)
        if after != text and after != unicodedata.normalize("NFC", text):
            changes.append(name)
        text = after
    return text.strip(), changes


def _neutralised(text: str) -> str:
    text = _TAG.sub("", _DROPPED_WITH_CONTENT.sub("", text))
    return _ANGLE.sub("‹", machinery.open_links(text))
