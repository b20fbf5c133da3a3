"""What a model does to a document: each find must match once, and only its own words are made fit to be kept."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from memberintel.lib import machinery
from memberintel.lib.sanitise import Refused, sanitise
from memberintel.lib.text import clean

LONGEST = 50_000
"""Characters one edit may bring: more than fits into any document."""


@dataclass(frozen=True)
class Edit:
    """Put `replace` where `find` stands."""

    find: str
    replace: str


@dataclass(frozen=True)
class Edited:
    """The text after all edits, and what was done to the model's words before they were put in."""

    text: str
    changes: tuple[str, ...] = ()


class Unmatched(Exception):
    """A find that does not stand in the text exactly once: edit number `edit` (from 1), found `times`."""

    def __init__(self, edit: int, times: int) -> None:
        super().__init__(f"edit {edit} matches {times} times")
        self.edit = edit
        self.times = times


class TooMuch(Exception):
    """An edit brings more than LONGEST characters."""


def edited(text: str, edits: Sequence[Edit], append: str = "") -> Edited:
    """The text after the edits, one after the other, and with `append` as a new last line.

    Unmatched, TooMuch, and Refused when what comes in speaks to the machinery, by itself or beside what it is put
    next to. What a person wrote before is not looked at otherwise.
    """
    before, changes = text, list[str]()
    for number, edit in enumerate(edits, 1):
        find, brought = _as_it_stands(text, edit, number)
        words, done = _fit(brought)
        text = text.replace(find, words, 1)
        changes += done
    if append.strip():
        words, done = _fit(append)
        text = "\n".join(part for part in (text.rstrip(), words.strip()) if part)
        changes += done
    _refuse_new(before, text)
    return Edited(text, tuple(dict.fromkeys(changes)))


def _as_it_stands(text: str, edit: Edit, number: int) -> tuple[str, str]:
    """Find and replacement. A model reads documents with entities for `&`, `<` and `>`, and may write them so."""
    times = text.count(edit.find) if edit.find else 0
    if times == 0 and (plain := html.unescape(edit.find)) != edit.find:
        times = text.count(plain)
        edit = Edit(plain, html.unescape(edit.replace))
    if times != 1:
        raise Unmatched(number, times)
    return edit.find, edit.replace


def _fit(words: str) -> tuple[str, tuple[str, ...]]:
    """The words as they may be kept, within the white space they came in; what was done to them."""
    if len(words) > LONGEST:
        raise TooMuch
    words = clean(words)
    bare = words.strip()
    if not bare:
        return words, ()
    start = words.index(bare[0])
    done = sanitise(bare, limit=2 * LONGEST)
    return words[:start] + done.text + words[start + len(bare) :], done.changes


def _refuse_new(before: str, after: str) -> None:
    """Harmless halves can make a harmful whole: look at every line that is new, and at all of them in their place."""
    known = set(before.split("\n"))
    fresh = "\n".join(line for line in after.split("\n") if line not in known)
    reason = machinery.refusal(fresh)
    if reason is None and (reason := machinery.refusal(after)) and machinery.refusal(before):
        reason = None  # a person had written it so
    if reason:
        raise Refused(reason)
