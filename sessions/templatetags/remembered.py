"""What the advisor was told, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django import template

from brain.domain import prompt
from memberintel.accounts.templatetags.pages import removed_words, section_title, told
from sessions.domain.transcript import SectionItem

register = template.Library()


@dataclass(frozen=True)
class Entry:
    """One thing known: its label ("" where the section's title says it) and its text, or that it is gone."""

    label: str
    text: str
    removed: bool = False


@dataclass(frozen=True)
class Known:
    """A section under its title."""

    title: str
    entries: tuple[Entry, ...]


@register.filter
def known(sections: Sequence[SectionItem]) -> list[Known]:
    """The sections that tell of the customer, each once, with its entries in order."""
    return [
        Known(section_title(name), tuple(entry for part in parts for entry in _entries(part)))
        for name, parts in groupby(told(sections), key=lambda part: part.name)
    ]


def _entries(part: SectionItem) -> list[Entry]:
    if part.text is None:
        return [Entry("", removed_words(part), removed=True)]
    return [
        Entry("" if entry.label.lower() == part.name else entry.label, entry.body)
        for entry in prompt.told(part.text)
    ]
