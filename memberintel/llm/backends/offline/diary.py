"""A journal by extraction: the customer's own sentences in their order, and a mood only where words tell of one."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from dataclasses import dataclass

from memberintel.lib import stems
from memberintel.lib.text import count_words
from memberintel.llm.types import Prompt

SHORT_SENTENCES, LONG_SENTENCES = 2, 6
THEMES = 3
LEAST_WORDS = 4

_LINE = re.compile(r"^\[\d\d:\d\d\] (.*)$", re.MULTILINE)
_MOST = re.compile(r"\bAt most (\d+) words\b")
# What people say outright of how they feel. Without any of it the mood is neutral.
_GOOD = re.compile(
    r"\b(?:glad|happy|great|excited|thrilled|proud|relieved|love[ds]?|wonderful|fantastic|delighted|hopeful|"
    r"looking forward|can't wait|froh|freue|stolz|erleichtert|contento|contenta|feliz|heureu(?:x|se)|ravie?)\b",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"\b(?:worried|worry|afraid|anxious|sad|angry|frustrat\w+|upset|stressed|overwhelmed|hopeless|exhausted|tired|"
    r"burn(?:ed|t) out|terrible|awful|annoy\w+|hate|miserable|sorgen|müde|erschöpft|wütend|traurig|preocupad[oa]|"
    r"cansad[oa]|triste|inqui(?:et|ète)|fatiguée?)\b",
    re.IGNORECASE,
)
_TIRED = re.compile(
    r"\b(?:tired|exhausted|drained|burn(?:ed|t) out|sleepless|müde|erschöpft|cansad[oa]|fatiguée?)\b",
    re.IGNORECASE,
)
_LIVELY = re.compile(r"\b(?:excited|thrilled|can't wait|energy|energi[sz]ed|fired up)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Said:
    """A sentence, and how glad it sounds: above 0 good, below bad."""

    text: str
    tone: int


def passage(prompt: Prompt) -> str:
    """The first, the middle and the last of what was said, word for word, within the limit the prompt states."""
    said = [one.text for one in _said(prompt) if not one.text.endswith("?")] or [
        one.text for one in _said(prompt)
    ]
    limit = _MOST.search(prompt.system[0]) if prompt.system else None
    if limit is None:
        return " ".join(_spread(said, SHORT_SENTENCES))
    for count in range(LONG_SENTENCES, 0, -1):
        text = " ".join(_spread(said, count))
        if count_words(text) <= int(limit[1]):
            return text
    return said[0] if said else ""


def mood(prompt: Prompt) -> str:
    """Mood, energy, reason and themes as JSON. The reason is the sentence that shows the mood most, word for word."""
    said = _said(prompt)
    tone = sum(one.tone for one in said)
    strongest = max(said, key=lambda one: one.tone * (1 if tone > 0 else -1), default=None)
    text = " ".join(one.text for one in said)
    return json.dumps(
        {
            "mood": _named(tone),
            "energy": "low" if _TIRED.search(text) else "high" if _LIVELY.search(text) else "medium",
            "reason": strongest.text if strongest is not None and tone else "",
            "themes": _themes(text),
        },
        ensure_ascii=False,
    )


def _said(prompt: Prompt) -> list[_Said]:
    found: list[_Said] = []
    for message in prompt.messages:
        for line in _LINE.findall(message.text):
            for text in stems.sentences(html.unescape(line).replace(" / ", "\n")):
                if count_words(text) >= LEAST_WORDS:
                    found.append(_Said(text, len(_GOOD.findall(text)) - len(_BAD.findall(text))))
    return found


def _spread(said: list[str], count: int) -> list[str]:
    """So many sentences from the whole of it, the first and the last among them."""
    if len(said) <= count:
        return said
    places = {round(number * (len(said) - 1) / max(count - 1, 1)) for number in range(count)}
    return [said[place] for place in sorted(places)]


def _named(tone: int) -> str:
    if tone == 0:
        return "neutral"
    return ("good" if tone < 3 else "great") if tone > 0 else ("low" if tone > -3 else "very_low")


def _themes(text: str) -> list[str]:
    """The words that come back most, as they were written."""
    words = re.findall(r"[^\W\d_]{5,}", text)
    by_stem: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for word in words:
        for stem in stems.stems(word):
            by_stem.setdefault(stem, word.lower())
            counts[stem] += 1
    return [by_stem[stem] for stem, count in counts.most_common(THEMES) if count > 1]
