"""The chat answer: what was handed over from last time, then what the notes say about the question."""

from __future__ import annotations

from memberintel.lib import stems
from memberintel.lib.stems import Sentence
from memberintel.llm.backends.offline import context
from memberintel.llm.backends.offline.context import Notes, Section
from memberintel.llm.types import Prompt

MOST_QUOTES = 3
MOST_OPEN_ITEMS = 5
MOST_MEMORIES = 5
LONGEST_QUOTE = 400  # characters
LONGEST_ECHO = 160
LONGEST_READ = 20_000  # characters of one message; of a longer one the beginning is read
MESSAGES_LOOKED_BACK = 40
TELLING_STEMS = 3

_SOURCES = {
    "soul": "what I know about you",
    "bible": "your business notes",
    "heartbeat": "your site's figures",
    "memory": "what I remembered",
    "shared_knowledge": "shared knowledge",
}


def answer(prompt: Prompt) -> str:
    """A short answer made of quotations from the prompt and a few fixed words around them."""
    asked = context.last_question(prompt)[:LONGEST_READ]
    first = all(message.role == "user" for message in prompt.messages)
    known = context.sections(prompt.system)
    recalled = context.sections([prompt.messages[-1].text]) if prompt.messages else []
    notes = [each for section in known if section.name == "wrap_ups" for each in context.notes(section)]
    memories = _memories([*known, *recalled] if first else recalled)
    opening = [*(_handed_over(notes) if first else []), *_remembered(memories)]
    candidates = [*_candidates(known + recalled, notes), *_said_before(prompt)]
    fresh = [each for each in candidates if not any(each.text in part for part in opening)]
    return "\n\n".join([*opening, *_reflection(asked, fresh, bool(opening))])


def _handed_over(notes: list[Notes]) -> list[str]:
    """The note and the open items of the newest session that left any."""
    newest = next((each for each in reversed(notes) if each.note or each.open_items), None)
    if newest is None:
        return []
    parts = []
    if newest.note:
        note = " ".join(newest.note)
        # A note may be written to the advisor, as something to do.
        head = "For today I had noted:" if note.startswith("Ask ") else "Last time we left it at:"
        parts.append(f"{head} {note}")
    if newest.draft:
        parts.append("(My notes on that session are not final yet.)")
    if newest.open_items:
        parts.append(_listed("Open since then:", newest.open_items[:MOST_OPEN_ITEMS]))
    return parts


def _memories(sections: list[Section]) -> list[str]:
    lines = [
        line.strip().removeprefix("- ").strip()
        for section in sections
        if section.name == "memory"
        for body in (section.body, *(body for _, body in section.entries))
        for line in body.split("\n")
    ]
    return list(dict.fromkeys(line for line in lines if line))


def _remembered(memories: list[str]) -> list[str]:
    return [_listed("I also remember:", memories[:MOST_MEMORIES])] if memories else []


def _candidates(sections: list[Section], notes: list[Notes]) -> list[Sentence]:
    found = [
        Sentence(text, _SOURCES.get(section.name, section.name))
        for section in sections
        if section.name != "wrap_ups"
        for body in (section.body, *(body for _, body in section.entries))
        for text in stems.sentences(body)
    ]
    for each in reversed(notes):  # the newest first: of equally close sentences it is the better one
        source = each.label[:1].lower() + each.label[1:]
        items = [*each.decisions, *each.open_items, *each.new_context]
        found += [Sentence(text, source) for part in each.summary for text in stems.sentences(part)]
        found += [Sentence(text, source) for text in items]
    unique = {sentence.text: sentence for sentence in reversed(found)}
    return list(reversed(unique.values()))


def _said_before(prompt: Prompt) -> list[Sentence]:
    earlier = [message for message in prompt.messages[:-1] if message.role == "user"]
    return [
        Sentence(text, "what you said earlier")
        for message in earlier[-MESSAGES_LOOKED_BACK:]
        for text in stems.sentences(context.said(message.text)[:LONGEST_READ])
    ]


def _reflection(asked: str, candidates: list[Sentence], opened: bool) -> list[str]:
    echo = _echo(asked)
    quotes = stems.related(asked, candidates, MOST_QUOTES)
    if quotes:
        lines = [f"{_shortened(quote.text, LONGEST_QUOTE)} ({quote.source})" for quote in quotes]
        return [_listed(f"On \u201c{echo}\u201d, this is what I have:", lines)]
    if not stems.stems(asked):
        return [] if opened else ["I am here. What would you like to work on?"]
    return [
        f"On \u201c{echo}\u201d I have nothing in my notes yet. Tell me more, and I will keep it for next time."
    ]


def _echo(asked: str) -> str:
    """The last question in the message, else the first sentence that is about something."""
    parts = stems.sentences(asked)
    questions = [part for part in parts if part.endswith("?") and stems.stems(part)]
    telling = (part for part in parts if len(stems.stems(part)) >= TELLING_STEMS)
    chosen = questions[-1] if questions else next(telling, parts[0] if parts else asked)
    return _shortened(chosen, LONGEST_ECHO)


def _listed(head: str, items: list[str]) -> str:
    if len(items) == 1:
        return f"{head} {items[0]}"
    return "\n".join([head, *(f"- {item}" for item in items)])


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
