"""How texts and moments are put into words on a page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

from django import template
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.formats import date_format
from django.utils.safestring import SafeString, mark_safe

from memberintel.lib import clock
from memberintel.lib import markdown as markdown_rules

register = template.Library()

SECTION_TITLES = {
    "soul": "Who you are (SOUL)",
    "bible": "Your business (BIBLE)",
    "heartbeat": "Your site's numbers (HEARTBEAT)",
    "wrap_ups": "Notes on our last conversations",
    "memory": "Single things I remember",
    "shared_knowledge": "What others learned",
}
CLOSED = {
    "ended": "You ended this conversation",
    "stream_closed": "Closed after you left the page",
    "idle": "Closed after two hours of silence",
    "erased": "Erased",
}


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown as safe HTML."""
    return mark_safe(markdown_rules.render(text or ""))  # noqa: S308 - the renderer lets no HTML through


@register.filter
def closed_words(item: Any) -> str:
    """Why a session closed."""
    return CLOSED.get(item.reason, f"Closed ({item.reason})")


@register.filter
def told(sections: Iterable[Any]) -> list[Any]:
    """The sections that tell of the customer: all but the advisor's own instructions."""
    return [section for section in sections if section.name != "base"]


@register.filter
def section_title(name: str) -> str:
    """What a section of the prompt is called on a page."""
    return SECTION_TITLES.get(name, name.replace("_", " ").capitalize())


@register.filter
def section_words(text: str) -> str:
    """A section of the prompt as a person reads it: without wrapper lines and entities."""
    lines: list[str] = []
    for line in text.split("\n"):
        if entry := re.fullmatch(r'<entry label="([^"<>]*)">', line):
            lines += ["", entry[1]] if lines else [entry[1]]
        elif not re.fullmatch(r"</?(section|entry)( [^<>]*)?>", line):
            lines.append(line)
    return html.unescape("\n".join(lines))


@register.filter
def removed_words(section: Any) -> str:
    """What stands where the text of a deleted source was."""
    day = parse_date(section.removed_on or "")
    return f"Removed by you on {date_format(day, 'j F Y')}." if day else "Removed by you."


@register.filter
def when(session: Any) -> str:
    """The day of a session and the times of its first and last message, in the person's time zone."""
    start, end = timezone.localtime(session.started_at), timezone.localtime(session.ended_at)
    today = timezone.localtime(clock.now()).date()
    day = {0: "Today", 1: "Yesterday"}.get((today - start.date()).days) or date_format(start, "l, j F Y")
    first, last = date_format(start, "H:i"), date_format(end, "H:i")
    return f"{day}, {first}" if first == last else f"{day}, {first}–{last}"
