"""Takes out of an item of a wrap-up whatever could tell whose it is, before it is compared with those of others.

Names cannot be recognised: they come in every script, in small letters, and out of imagination. So this goes the other
way: what is not a plain English word of a list (`plain_words.txt`) is left out, whatever it is. Numbers, written in
digits or words, amounts, dates, addresses, links and names are not on the list. An item of which too little is known
is left out whole; so is what is written in another language.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import regex

from memberintel.lib.text import visible

BREAK: Final = "…"
"""Stands wherever something was left out, and between sentences and clauses: what it hides cannot be told."""
LONGEST_READ: Final = 2_000  # characters of an item
LEAST_KNOWN: Final = 0.6  # of the words of an item; with fewer nothing of it is used
LEAST_WORDS: Final = 3  # that carry a meaning
SHORTEST_PHRASE: Final = 2  # words
LONGEST_PHRASE: Final = 5

type Run = tuple[str, ...]

_AROUND = "\"'“”„‘’‚«»‹›`()[]{}*_.,;:!?…¿¡"
_CLAUSE_ENDS = frozenset(",;:()[]{}")
_SENTENCE_ENDS = frozenset(".!?:")
_WORD: Final = regex.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_DASHES = regex.compile(r"\s*[—–]\s*|\s+-+\s+|\s*\n\s*")
_AFTER_A_VERB = frozenset({"a", "an", "the", "our", "my", "their", "your", "all"})


class Plain(NamedTuple):
    """The words that may stay; which of them are little words, and which are also names."""

    words: frozenset[str]
    little: frozenset[str]
    names: frozenset[str]


@cache
def plain() -> Plain:
    """The list: paragraphs under a heading that says whether they are little words, and whether also names."""
    words: set[str] = set()
    little: set[str] = set()
    names: set[str] = set()
    text = Path(__file__).with_name("plain_words.txt").read_text("utf-8")
    for paragraph in text.split("\n\n"):
        heading, _, body = paragraph.partition("\n")
        found = body.split()
        words.update(found)
        little.update(found if "little" in heading else ())
        names.update(found if "also names" in heading else ())
    return Plain(frozenset(words), frozenset(little), frozenset(names))


def redact(text: str) -> str:
    """What may be used of an item, in small letters: runs of plain words with `…` between them; "" when too little
    of it is known. Applied to its own result it changes nothing."""
    pieces, unknown = _read(text)
    runs = list(_runs(pieces))
    known = sum(map(len, runs))
    telling = sum(word not in plain().little for run in runs for word in run)
    if telling < LEAST_WORDS or known < LEAST_KNOWN * (known + unknown):
        return ""
    return f" {BREAK} ".join(" ".join(run) for run in runs)


def phrases(redacted: str) -> frozenset[Run]:
    """Every phrase of a redacted text that could be shown: a few words in a row, within one run, that neither begin nor
    end with a little word."""
    little = plain().little
    found: set[Run] = set()
    for run in _split(redacted):
        for begin, first in enumerate(run):
            if first in little:
                continue
            ends = range(begin + SHORTEST_PHRASE, min(begin + LONGEST_PHRASE, len(run)) + 1)
            found.update(run[begin:end] for end in ends if run[end - 1] not in little)
    return frozenset(found)


def _split(redacted: str) -> list[Run]:
    return [tuple(part.split()) for part in redacted.split(BREAK) if part.strip()]


def _runs(pieces: Sequence[str]) -> Iterator[Run]:
    run: list[str] = []
    for piece in (*pieces, ""):
        if piece:
            run.append(piece)
        elif run:
            yield tuple(run)
            run = []


def _read(text: str) -> tuple[list[str], int]:
    """The words that may stay, "" for a break; and how many words were not known (a number in digits is no word)."""
    flat = unicodedata.normalize("NFKC", visible(text[:LONGEST_READ])).replace("’", "'")
    chunks = _DASHES.sub(f" {BREAK} ", flat).split()
    pieces: list[str] = []
    unknown, begins = 0, True
    for place, chunk in enumerate(chunks):
        core = chunk.strip(_AROUND)
        lead, tail = chunk[: len(chunk) - len(chunk.lstrip(_AROUND))], chunk[len(chunk.rstrip(_AROUND)) :]
        if not core:
            pieces.append("")
            begins = True
            continue
        following = chunks[place + 1].strip(_AROUND) if place + 1 < len(chunks) and not tail else ""
        word = _kept(core, begins=begins, following=following)
        unknown += not word and any(map(str.isalpha, core))
        if _CLAUSE_ENDS & set(lead):
            pieces.append("")
        pieces.append(word)
        begins = bool(_SENTENCE_ENDS & set(tail))
        if tail.strip("\"'“”‘’«»`*_"):
            pieces.append("")
    return pieces, unknown


def _kept(core: str, *, begins: bool, following: str) -> str:
    """The word in small letters if it may stay, else "". A capital is allowed where a sentence begins, and there only
    on a word that is no name, or that an article follows."""
    if not _WORD.fullmatch(core):
        return ""
    small = core.lower()
    if core != small:
        if not begins or core[1:] != small[1:]:
            return ""
        if _named(small) and following not in _AFTER_A_VERB:
            return ""
    return small if _known(small) else ""


def _known(small: str) -> bool:
    words = plain().words
    return small in words or all(part in words for part in _parts(small))


def _named(small: str) -> bool:
    return any(part in plain().names for part in (small, *_parts(small)))


def _parts(small: str) -> list[str]:
    """What a word with hyphens is made of; of a possessive the owner."""
    return small.removesuffix("'s").split("-")
