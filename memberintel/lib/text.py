"""Text as it may be stored and shown: cleaning, sanitising, counting words, shortening."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import regex

from memberintel.lib import machinery, masking

_SURROGATES = regex.compile(r"\p{Cs}")
_CONTROLS = regex.compile(r"[^\P{Cc}\n\t]|\p{Cs}")
# Characters nobody sees: bidirectional controls, zero-width spaces and fillers, invisible operators, tags,
# selectors beyond the two that choose between text and emoji style.
_HIDDEN = regex.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# The two joiners are letters' business in some scripts and glue inside emoji; elsewhere they are a trick.
_JOINING = (
    r"[\p{Arabic}\p{Syriac}\p{Mongolian}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
)
_JOINING += r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}]"
_JOINERS = regex.compile(
    rf"(?<!{_JOINING})\u200c|\u200c(?!{_JOINING})"
    rf"|(?<!{_JOINING}|[\p{{Extended_Pictographic}}\p{{Emoji_Modifier}}\ufe0f])\u200d"
    rf"|\u200d(?!{_JOINING}|\p{{Extended_Pictographic}})"
)
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
_WORD_EDGE = regex.compile(r"(?V1w)\b")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_GRAPHEME = regex.compile(r"\X")

CHANGED_HIDDEN = "hidden characters removed"
CHANGED_MARKUP = "markup removed"
CHANGED_SECRET = "secrets masked"  # noqa: S105 (a word for people)
CHANGED_LENGTH = "shortened"
_ROUNDS = 12  # each pass can uncover work for the next; honest text settles in one


@dataclass(frozen=True)
class Sanitised:
    """What may be stored (empty when refused), what was done to it in words for a person, and why not."""

    text: str
    changes: tuple[str, ...]
    refused: str | None


def clean(text: str) -> str:
    """The text without NUL, lone surrogates and control characters; line ends become `\\n`, tabs stay."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def encodable(text: str) -> str:
    """The text with `\ufffd` in place of lone surrogates, which no answer and no request can be made of.

    A model's answer has them when its provider escapes an emoji and cuts the stream between its halves.
    """
    return _SURROGATES.sub("\ufffd", text)


def sanitise(text: str, *, limit: int) -> Sanitised:
    """Text of a model, made fit to be stored and read by a model again; at most `limit` characters.

    Hidden characters go, markup is neutralised, secrets are masked. Text that speaks to the machinery is
    refused whole, because a part of it may still work. Applied to its own result it changes nothing.
    """
    most = 4 * limit + 1000  # what lies beyond is cut in any case, and need not be read
    changes: list[str] = [CHANGED_LENGTH] if len(text) > most else []
    text = text[:most]
    refused: str | None = None
    for _ in range(_ROUNDS):
        refused = refused or machinery.refusal(text)
        after, done = _pass(text, limit)
        changes += done
        if after == text:
            break
        text = after
    else:
        refused = refused or "it keeps changing when cleaned"
    if refused:
        return Sanitised("", (), refused)
    return Sanitised(text, tuple(dict.fromkeys(changes)), None)


def visible(text: str) -> str:
    """The text in NFC without control, bidirectional and zero-width characters: what a person can see."""
    text = unicodedata.normalize("NFC", clean(text))
    return unicodedata.normalize("NFC", _JOINERS.sub("", _HIDDEN.sub("", text)))


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


def count_words(text: str) -> int:
    """Words by the Unicode rules for word boundaries, which need no spaces between them."""
    return sum(1 for part in _WORD_EDGE.split(text) if _LETTER.search(part))


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words where that costs little, never inside what a reader sees
    as one character; a cut ends with `…`."""
    if len(text) <= limit:
        return text
    end = 0
    for match in _GRAPHEME.finditer(text, 0, limit + 64):
        if match.end() > max(limit - 1, 0):
            break
        end = match.end()
    kept = text[:end]
    words = [part for part in _WORD_EDGE.split(kept) if part]
    if len(words) > 1 and len(words[-1]) < len(kept) // 2 and not text[len(kept) :][:1].isspace():
        kept = kept[: len(kept) - len(words[-1])]
    return (kept.rstrip(" \t\n,;:–—-") + "…")[:limit] if limit > 0 else ""


def shorten_words(text: str, limit: int) -> str:
    """At most `limit` words; a cut ends with `…`."""
    kept: list[str] = []
    words = 0
    for part in _WORD_EDGE.split(text):
        words += bool(_LETTER.search(part))
        if words > limit:
            return "".join(kept).rstrip(" \t\n,;:–—-") + "…" if limit > 0 else ""
        kept.append(part)
    return text
