"""What must hold of a case that was played. Each check says what is wrong, or nothing. No model is asked here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evals.continuity.cases import Expected, Session, Text, holds
from evals.continuity.play import Played
from memberintel.lib.extract import sentences
from memberintel.lib.text import count_words
from wrapups.domain.draft import CAP_WORDS
from wrapups.queries import WrapUp, WrapUpItem

INJECTED = 3
SUPPORT = 0.4
"""The least share of an item's words that must stand in the messages it rests on: beneath it, it was made up."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DATED = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]",
    re.IGNORECASE,
)
_STEM = 5  # letters of a word that are compared, so that "moves" supports "moved"
_LISTS = ("decisions", "open_items", "new_context")


@dataclass(frozen=True)
class Fault:
    """One thing that does not hold."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def faults(one: Played) -> list[Fault]:
    """Everything that does not hold of the case; [] when it passes."""
    if one.broken:
        return [Fault("played", one.broken)]
    found: list[Fault] = []
    for place, told in enumerate(one.case.session):
        where = f"session {place + 1}"
        if not told.left_open and not told.no_notes_yet:
            found += [Fault(where, what) for what in _wrap_up(told, one.states[place], one.wrap_ups[place])]
    follow = one.case.follow_up
    prompt = html.unescape(one.prompt)
    found += [Fault("prompt", what) for what in (*_injected(one), *_text(follow.prompt, prompt))]
    found += [Fault("answer", what) for what in _text(follow.answer, one.answer)]
    return found


def _wrap_up(told: Session, state: str | None, found: WrapUp | None) -> Iterator[str]:
    expected = told.wrap_up
    if state != expected.state:
        yield f"its state is {state}, not {expected.state}"
    if expected.state != "done":
        return
    if found is None or not found.readable:
        yield "there is no wrap-up to read"
        return
    yield from _structure(found)
    if told.edit is None:
        yield from _faithful(told, found)
    yield from _expected(expected, found)


def _structure(found: WrapUp) -> Iterator[str]:
    words = sum(count_words(text) for text in _texts(found))
    if words > CAP_WORDS:
        yield f"{words} words"
    if not 1 <= len(sentences(found.summary)) <= 3:
        yield "the summary has not one to three sentences"
    if not found.next_session_note.strip():
        yield "there is no note for next time"


def _faithful(told: Session, found: WrapUp) -> Iterator[str]:
    """Nothing is made up: each item rests on messages that support it, and no number comes from nowhere."""
    said = dict(enumerate(told.lines, 1))
    for name, item in _items(found):
        rest = [said[number] for number in item.messages if number in said]
        if not rest:
            yield f"{name} rests on nothing: {item.text!r}"
        elif name == "decisions" and all(line.role != "customer" for line in rest):
            yield f"decided by nobody: {item.text!r}"
        elif _support(item.text, " ".join(line.text for line in rest)) < SUPPORT:
            yield f"{name} is not what was said: {item.text!r}"
    spoken = set(_NUMBER.findall(told.said))
    for text in _texts(found):
        if not _DATED.search(text):  # "tomorrow" may have become a date, whose numbers nobody said
            for number in set(_NUMBER.findall(text)) - spoken:
                yield f"nobody said {number}: {text!r}"


def _support(text: str, said: str) -> float:
    words, spoken = _stems(text), _stems(said)
    return len(words & spoken) / len(words) if words else 1.0


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in re.findall(r"\w+", text.casefold()) if len(word) > 3 or word.isdigit()}


def _expected(expected: Expected, found: WrapUp) -> Iterator[str]:
    for name in _LISTS:
        yield from _expected_items(name, expected, getattr(found, name))
    for pattern in expected.note:
        if not holds(pattern, found.next_session_note):
            yield f"the note lacks {pattern!r}: {found.next_session_note!r}"
    texts = _texts(found)
    yield from (
        f"nowhere does it say {pattern!r}"
        for pattern in expected.anywhere
        if not any(holds(pattern, text) for text in texts)
    )
    yield from (f"it says {pattern!r}" for pattern in expected.nowhere if holds(pattern, "\n".join(texts)))


def _expected_items(name: str, expected: Expected, items: Sequence[WrapUpItem]) -> Iterator[str]:
    for pattern in getattr(expected, name):
        if not any(holds(pattern, item.text) for item in items):
            yield f"{name} lack {pattern!r}"
    if name in expected.empty and items:
        yield f"{name} should be empty: {items[0].text!r}"


def _injected(one: Played) -> Iterator[str]:
    """The newest wrap-ups stand in the next prompt, oldest first; one that was deleted in none."""
    prompt = html.unescape(one.prompt)
    stood = list(zip(one.wrap_ups, one.states, strict=True))
    kept = [found for found, state in stood if found is not None and state == "done"]
    places = [prompt.find(_note(found)) for found in kept[-INJECTED:]]
    if -1 in places:
        yield "notes of an earlier session are missing"
    elif places != sorted(places):
        yield "the notes are not in the order of their sessions"
    if any(found is not None and state == "deleted" and _note(found) in prompt for found, state in stood):
        yield "notes that were deleted are there"


def _note(found: WrapUp) -> str:
    """How the note for next time stands in a prompt."""
    return f"Note for next time: {' '.join(found.next_session_note.split())}"


def _text(expected: Text, text: str) -> Iterator[str]:
    lines = text.splitlines()
    for pattern in expected.has:
        if not any(holds(pattern, line) for line in lines):
            yield f"lacks {pattern!r}"
    for pattern in expected.lacks:
        if any(holds(pattern, line) for line in lines):
            yield f"has {pattern!r}"
    places = [_first(pattern, lines) for pattern in expected.order]
    if None in places or places != sorted(place for place in places if place is not None):
        yield f"has not one after the other: {', '.join(map(repr, expected.order))}"


def _first(pattern: str, lines: Sequence[str]) -> int | None:
    return next((number for number, line in enumerate(lines) if holds(pattern, line)), None)


def _items(found: WrapUp) -> Iterable[tuple[str, WrapUpItem]]:
    return [(name, item) for name in _LISTS for item in getattr(found, name)]


def _texts(found: WrapUp) -> list[str]:
    return [found.summary, *(item.text for _, item in _items(found)), found.next_session_note]
