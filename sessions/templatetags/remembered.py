"""What the advisor was told, as a person reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django import template
from django.utils.safestring import SafeString

from brain.domain.prompt import Told
from brain.domain.prompt import told as entries_of
from memberintel.accounts.templatetags import pages
from sessions.domain import tools
from sessions.domain.transcript import PromptItem, ToolItem

register = template.Library()


@dataclass(frozen=True)
class Known:
    """A section under its title. An entry's label is "" where the title says it already."""

    title: str
    entries: tuple[Told, ...]


# The headings of a note as prompts have them, which are no Markdown.
_PARTS = re.compile(r"^(Summary|Decisions|Open items|New context|Note for next time):[ \n]?", re.MULTILINE)


@register.filter
def tool_line(call: ToolItem) -> str:
    """What the advisor did with a tool, in words."""
    return tools.words(call.name, running=call.result is None, failed=call.error)


@register.filter
def known_words(text: str) -> SafeString:
    """An entry as safe HTML: what the customer or the advisor wrote as Markdown, the parts of a note set apart."""
    return pages.markdown(_PARTS.sub(r"\n**\1**\n\n", text))


@register.filter
def known(prompts: Sequence[PromptItem]) -> list[Known]:
    """What the advisor knows now, by sections, and what it once knew in this session and was made to forget.

    `prompts` are all there were, in order. A prompt that was made anew after a removal no longer names what is
    gone; the ones before it do.
    """
    told = [_by_name(prompt) for prompt in prompts]
    now = told[-1] if told else {}
    names = dict.fromkeys([*now, *(name for prompt in told for name in prompt)])
    found = []
    for name in names:
        standing = [entry for entry in now.get(name, ()) if not entry.removed]
        gone = max(([entry for entry in prompt.get(name, ()) if entry.removed] for prompt in told), key=len)
        if standing or gone:
            found.append(Known(pages.section_title(name), (*standing, *gone)))
    return found


def _by_name(prompt: PromptItem) -> dict[str, list[Told]]:
    found: dict[str, list[Told]] = {}
    for section in pages.told(prompt.sections):
        found.setdefault(section.name, []).extend(_entries(section))
    return found


def _entries(section: Any) -> Iterable[Told]:
    if section.text is None:
        return [Told("", pages.removed_words(section), removed=True)]
    return [
        Told("" if entry.label.lower() == section.name else entry.label, entry.body, entry.removed)
        for entry in entries_of(section.text)
    ]
