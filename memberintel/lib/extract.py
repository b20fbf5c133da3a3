"""A summary of a conversation without a model: its own sentences, chosen by cue phrases and position.

Deterministic, and never an invented sentence: every item is a stretch of a message, with that message's number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from memberintel.lib import cues
from memberintel.lib.machinery import refusal
from memberintel.lib.text import count_words, shorten_words


@dataclass(frozen=True)
class Line:
    """One message of the conversation; numbers rise from 1."""

    number: int
    role: Literal["customer", "advisor"]
    text: str


@dataclass(frozen=True)
class Found:
    """A sentence as it was written, and the numbers of the messages it rests on."""

    text: str
    messages: tuple[int, ...]


@dataclass(frozen=True)
class Extract:
    """What was found, each list in the order of the conversation. Empty fields where there was nothing."""

    summary: str
    decisions: tuple[Found, ...]
    open_items: tuple[Found, ...]
    new_context: tuple[Found, ...]
    next_session_note: str


@dataclass(frozen=True)
class _Sentence:
    text: str
    number: int
    by_customer: bool
    question: bool
    place: float  # 0 at the beginning of the conversation, 1 at its end
    last_of_all: bool
    words: int


@dataclass(frozen=True)
class _Candidate:
    sentence: _Sentence
    score: float


_MOST = {"decisions": 5, "open_items": 5, "new_context": 7}
_LONGEST = 60  # words; a longer sentence is rarely one statement
_NOTE_WORDS = 40

_CUES = {
    "decisions": cues.DECIDES,
    "open_items": cues.PROMISES,
    "new_context": cues.STATES,
}

_REPEATS = regex.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s|[“„«]")

# A full stop ends a sentence unless it belongs to a short form, an initial or a numbered list.
_END = regex.compile(
    r"(?<!\b(?:mr|mrs|ms|dr|prof|st|vs|etc|approx|no|nr|inc|ltd|co|e\.g|i\.e|z\.b|a\.m|p\.m|(?-i:\p{Lu})|\d)\.)(?<=[.!?…][\"'”’»)\]]*)\s+"
    r"|(?<=[。！？])|\n+(?:\s*(?:[-*•]|\d{1,2}[.)])\s+)?",
    regex.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a message, as they stand in it, without the white space around them."""
    return [part for part in (piece.strip() for piece in _END.split(text) if piece) if part]


def extract(lines: Sequence[Line], *, max_words: int = 400) -> Extract:
    """What the conversation decided, left open and told, at most `max_words` words in all.

    Only what the customer wrote decides or tells; what the advisor offers to do can stay open.
    """
    said = _standing(_read(lines))
    ranked = {
        "decisions": _ranked(said, "decisions"),
        "open_items": _ranked(said, "open_items"),
        "new_context": _ranked(said, "new_context"),
    }
    chosen = _chosen(ranked)
    opening = _summary(said, chosen)
    note = shorten_words(_note(chosen, opening), max_words // 4)
    summary = shorten_words(_joined(opening), max_words - count_words(note))
    kept = _within(chosen, max_words - count_words(note) - count_words(summary))
    return Extract(
        summary=summary,
        decisions=_found(kept["decisions"]),
        open_items=_found(kept["open_items"]),
        new_context=_found(kept["new_context"]),
        next_session_note=note,
    )


def _read(lines: Sequence[Line]) -> Iterator[_Sentence]:
    last = max((line.number for line in lines), default=0)
    for index, line in enumerate(lines):
        for text in sentences(line.text if line.role == "customer" else _own_words(line.text)):
            words = count_words(text)
            if words and refusal(text) is None:
                yield _Sentence(
                    text=text,
                    number=line.number,
                    by_customer=line.role == "customer",
                    question=text.rstrip("\"'”’»)]").endswith(("?", "？")),
                    place=index / max(len(lines) - 1, 1),
                    last_of_all=line.number == last,
                    words=words,
                )


def _own_words(answer: str) -> str:
    """An answer without its lists and the lines that quote: there the advisor repeats what it was told."""
    return "\n".join(line for line in answer.splitlines() if not _REPEATS.search(line))


def _standing(read: Iterable[_Sentence]) -> list[_Sentence]:
    """What was not taken back: a withdrawal removes itself and the customer's sentence before it."""
    standing: list[_Sentence] = []
    for sentence in read:
        if sentence.by_customer and cues.WITHDRAWS.search(sentence.text):
            own = [place for place, earlier in enumerate(standing) if earlier.by_customer]
            if own:
                del standing[own[-1]]
            if sentence.words <= 6:
                continue
        standing.append(sentence)
    return standing


def _ranked(said: Sequence[_Sentence], kind: str) -> list[_Candidate]:
    candidates = [_Candidate(sentence, _score(sentence, kind)) for sentence in said]
    worthy = [candidate for candidate in candidates if candidate.score > 0]
    return sorted(worthy, key=lambda found: (-found.score, found.sentence.number, found.sentence.text))


def _score(sentence: _Sentence, kind: str) -> float:
    """How much a sentence is of this kind; 0 when it is not at all."""
    if not 4 <= sentence.words <= _LONGEST or cues.SMALL_TALK.search(sentence.text):
        return 0
    if sentence.question:
        return _question_score(sentence) if kind == "open_items" else 0
    if not sentence.by_customer:
        if kind != "open_items":
            return 0
        offer = _weight(sentence, cues.ADVISES)
        return offer - 1 + sentence.place if offer else 0
    weight = _weight(sentence, _CUES[kind])
    if not weight:
        return 0
    late = sentence.place if kind != "new_context" else 1 - sentence.place
    return max(weight + late + min(sentence.words, 20) / 20 + _tone(sentence.text), 0.1)


def _tone(text: str) -> float:
    """Figures speak for a sentence; a cheer, or a beginning that points at something said before, against it."""
    figures = 0.5 if regex.search(r"\d", text) else 0.0
    pointing = 1.0 if regex.match(r"(?i)(?:it|that|this|he|she|they|those|these)\b", text) else 0.0
    return figures - pointing - (0.7 if text.endswith("!") else 0.0)


def _question_score(sentence: _Sentence) -> float:
    """A question of the customer is open when nothing follows it, else it was probably answered."""
    if (
        not sentence.by_customer
        or cues.CHITCHAT_QUESTION.search(sentence.text)
        or not cues.ASKS.search(sentence.text)
    ):
        return 0
    return 4 if sentence.last_of_all else 0


def _weight(sentence: _Sentence, rules: cues.Rules) -> float:
    """The surest phrase counts in full, each further one less."""
    hits = sorted((weight for weight, rule in rules if rule.search(sentence.text)), reverse=True)
    return sum(weight / (1 + place) for place, weight in enumerate(hits))


def _chosen(ranked: dict[str, list[_Candidate]]) -> dict[str, list[_Candidate]]:
    """The best of each kind; a sentence stands once, as a decision before a plan before a fact."""
    taken: list[_Sentence] = []
    chosen: dict[str, list[_Candidate]] = {}
    for kind, candidates in ranked.items():
        chosen[kind] = []
        for candidate in candidates:
            if len(chosen[kind]) < _MOST[kind] and not any(_alike(candidate.sentence, one) for one in taken):
                chosen[kind].append(candidate)
                taken.append(candidate.sentence)
    return chosen


def _alike(one: _Sentence, other: _Sentence) -> bool:
    first, second = (set(regex.findall(r"\w{3,}", each.text.casefold())) for each in (one, other))
    return one.text == other.text or len(first & second) > 0.7 * max(min(len(first), len(second)), 1)


def _summary(said: Sequence[_Sentence], chosen: dict[str, list[_Candidate]]) -> list[_Sentence]:
    """Up to three sentences: what it was about, what was decided, where it ended; else the customer's longest."""
    first = _best(chosen["new_context"]) or _best(chosen["open_items"])
    then = _best(chosen["decisions"])
    last = _best([one for one in chosen["open_items"] if one.sentence not in (first, then)])
    if last is None or (first and then):
        last = last or _best([one for one in chosen["new_context"] if one.sentence not in (first, then)])
    picked = list(dict.fromkeys(sentence for sentence in (first, then, last) if sentence))
    if not picked:
        own = [sentence for sentence in said if sentence.by_customer]
        picked = sorted(
            own, key=lambda sentence: (bool(cues.SMALL_TALK.search(sentence.text)), -sentence.words)
        )[:2]
    return sorted(picked, key=lambda sentence: (sentence.number, said.index(sentence)))


def _joined(picked: Sequence[_Sentence]) -> str:
    """The sentences in a row, with a full stop where one would run into the next."""
    *others, last = [sentence.text for sentence in picked] or [""]
    return " ".join([*(text if text[-1] in '.!?…。！？"”)' else f"{text}." for text in others), last])


def _best(candidates: Sequence[_Candidate]) -> _Sentence | None:
    return candidates[0].sentence if candidates else None


def _note(chosen: dict[str, list[_Candidate]], summary: Sequence[_Sentence]) -> str:
    """One sentence for the next conversation, quoting the last thing that was left to happen."""
    own = [one for one in chosen["open_items"] if one.sentence.by_customer]
    pool = own or chosen["decisions"] or chosen["open_items"] or chosen["new_context"]
    near_best = [one.sentence for one in pool if one.score > pool[0].score - 1.5] or list(summary)
    if not near_best:
        return ""
    latest = max(near_best, key=lambda sentence: sentence.number)
    return f"Ask what came of “{shorten_words(latest.text, _NOTE_WORDS).rstrip(' .!…?')}”."


def _within(chosen: dict[str, list[_Candidate]], budget: int) -> dict[str, list[_Candidate]]:
    """The best candidates of all kinds as long as their words fit."""
    kept: dict[str, list[_Candidate]] = {kind: [] for kind in chosen}
    everything = [(candidate, kind) for kind, candidates in chosen.items() for candidate in candidates]
    for candidate, kind in sorted(everything, key=lambda pair: -pair[0].score):
        if candidate.sentence.words <= budget:
            budget -= candidate.sentence.words
            kept[kind].append(candidate)
    return kept


def _found(candidates: Sequence[_Candidate]) -> tuple[Found, ...]:
    ordered = sorted((candidate.sentence for candidate in candidates), key=lambda sentence: sentence.number)
    return tuple(Found(sentence.text, (sentence.number,)) for sentence in ordered)
