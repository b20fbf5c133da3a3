"""Text as it may be stored and shown: cleaning, counting words, shortening."""

from __future__ import annotations

import unicodedata

import regex

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
_WORD_EDGE = regex.compile(r"(?V1w)\b")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_GRAPHEME = regex.compile(r"\X")


def clean(text: str) -> str:
    """The text without NUL, lone surrogates and control characters; line ends become `\\n`, tabs stay."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def encodable(text: str) -> str:
    """The text with `\ufffd` in place of lone surrogates, which no answer and no request can be made of.

    A model's answer has them when its provider escapes an emoji and cuts the stream between its halves.
    """
    try:
        text.encode()  # the expression lets other threads in, who may keep an event loop waiting
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def visible(text: str) -> str:
    """The text in NFC without control, bidirectional and zero-width characters: what a person can see."""
    text = unicodedata.normalize("NFC", clean(text))
    return unicodedata.normalize("NFC", _JOINERS.sub("", _HIDDEN.sub("", text)))


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
