"""Notes by extraction: wrap-ups, summaries, findings, titles, all in the conversation's own sentences."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from memberintel.lib import cues, stems
from memberintel.lib.extract import Extract, Found, Line, extract
from memberintel.llm.backends.offline import context
from memberintel.llm.errors import BadRequest
from memberintel.llm.types import Prompt

DEFAULT_WORDS = 400
COMPACT_WORDS = 600
FINDINGS = 3
TITLE_WORDS = 8
LEAST_TITLE_WORDS = 3
TITLE_CHARACTERS = 60

_LINE = re.compile(r"^\[(\d+)\] (customer|advisor)(?: \d{1,2}:\d{2})?: (.*)$")
_LIMIT = re.compile(r"\b(?:word limit:|at most)\s+(\d+)(?=\s+words\b|\s+are allowed\b|\s*$)", re.MULTILINE)
_EARLIER = re.compile(r"^<earlier_summary>\n(.*?)\n</earlier_summary>$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"<(/?)(transcript|earlier_open_items)>")
_EARLIER_ITEM = re.compile(r"^\[(o\d+)\] [^:]*: (.*)$")
_SHARED = 0.6  # of the words of an open item, in the sentence that says it is done
_NUMBER = re.compile(r"\d")

type Role = Literal["customer", "advisor"]


@dataclass(frozen=True)
class _Asked:
    """What a prompt asks: the numbered lines of the transcript, and the words around it, newest last. `earlier` are
    the open items of earlier sessions by their short ids."""

    lines: list[Line]
    around: str
    earlier: dict[str, str]


def wrap_up(prompt: Prompt) -> str:
    """The wrap-up of the transcript in the prompt, as JSON, within the newest word limit the prompt states."""
    asked = _asked(prompt)
    limits = _LIMIT.findall(asked.around)
    found = extract(asked.lines, max_words=int(limits[-1]) if limits else DEFAULT_WORDS)
    return json.dumps(
        {
            "summary": found.summary,
            "decisions": _items(found.decisions),
            "open_items": _items(found.open_items),
            "new_context": _items(found.new_context),
            "next_session_note": found.next_session_note,
            "resolved": _resolved(asked),
        },
        ensure_ascii=False,
    )


def compact(prompt: Prompt) -> str:
    """A summary of the transcript in the prompt, or of its messages where there is no transcript; what an earlier
    summary in it holds comes first, as the customer's."""
    said = _asked(prompt)
    lines = said.lines or _lines(prompt)
    if earlier := _EARLIER.search("\n".join(message.text for message in prompt.messages)):
        lines = [Line(0, "customer", html.unescape(earlier[1])), *lines]
    limits = _LIMIT.findall(said.around)
    return _summary(
        extract(lines, max_words=min(int(limits[-1]), COMPACT_WORDS) if limits else COMPACT_WORDS)
    )


def distill(prompt: Prompt, output: type[BaseModel] | None) -> str:
    """The sentences that state figures, else the first ones: as lines, or as the list the shape asks for."""
    said = [
        text
        for message in prompt.messages
        if message.role == "user"
        for text in stems.sentences(context.said(message.text) or message.text)
    ]
    said += [
        text
        for message in prompt.messages
        for result in message.results
        for text in stems.sentences(result.content)
    ]
    findings = ([text for text in said if _NUMBER.search(text)] or said)[:FINDINGS]
    return "\n".join(findings) if output is None else _fitted(output, findings)


def title(prompt: Prompt) -> str:
    """The first words of the customer's first message, without a greeting before them."""
    first = next((line.text for line in _lines(prompt) if line.role == "customer"), "")
    sentences = stems.sentences(first)
    words = next((each for each in sentences if len(each.split()) >= LEAST_TITLE_WORDS), first).split()
    kept = " ".join(words[:TITLE_WORDS])
    if len(kept) > TITLE_CHARACTERS:
        kept = kept[:TITLE_CHARACTERS].rsplit(" ", 1)[0]
    return kept.rstrip(" .,;:!?")


def _asked(prompt: Prompt) -> _Asked:
    lines: list[Line] = []
    around = list(prompt.system)
    earlier: dict[str, str] = {}
    inside = ""
    for text in (
        text for message in prompt.messages if message.role == "user" for text in message.text.split("\n")
    ):
        if mark := _BLOCK.fullmatch(text.strip()):
            inside = "" if mark[1] else mark[2]
        elif not inside:
            around.append(text)
        elif inside == "earlier_open_items" and (found := _EARLIER_ITEM.match(text)):
            earlier[found[1]] = _text(found[2])
        elif inside == "transcript" and (found := _LINE.match(text)):
            role: Role = "customer" if found[2] == "customer" else "advisor"
            lines.append(Line(int(found[1]), role, _text(found[3])))
    return _Asked(lines, "\n".join(around), earlier)


def _resolved(asked: _Asked) -> list[dict[str, object]]:
    """Earlier open items that a sentence of the customer's says are done: with nearly all of the item's own words and
    a word for being done, and none that takes it back or puts it off."""
    said = [
        (line.number, frozenset(stems.stems(text)))
        for line in asked.lines
        if line.role == "customer"
        for text in stems.sentences(line.text)
        if cues.SETTLES.search(text) and not cues.NOT_YET.search(text) and not text.endswith("?")
    ]
    found: list[dict[str, object]] = []
    for short, item in asked.earlier.items():
        about = frozenset(stems.stems(item))
        least = max(2, math.ceil(len(about) * _SHARED))
        number = next((number for number, words in said if len(about & words) >= least), None)
        if number is not None:
            found.append({"item": short, "message": number})
    return found


def _text(rendered: str) -> str:
    return html.unescape(rendered.replace(" / ", "\n"))


def _lines(prompt: Prompt) -> list[Line]:
    """The transcript's lines, else the prompt's messages as lines."""
    if lines := _asked(prompt).lines:
        return lines
    return [
        Line(number, "customer" if message.role == "user" else "advisor", context.said(message.text))
        for number, message in enumerate(prompt.messages, start=1)
    ]


def _items(found: Sequence[Found]) -> list[dict[str, object]]:
    return [{"text": item.text, "messages": list(item.messages)} for item in found]


def _summary(found: Extract) -> str:
    parts = [found.summary]
    for head, items in (
        ("Decisions:", found.decisions),
        ("Open items:", found.open_items),
        ("Facts:", found.new_context),
    ):
        if items:
            parts.append("\n".join([head, *(f"- {item.text}" for item in items)]))
    return "\n\n".join(part for part in parts if part)


def _fitted(output: type[BaseModel], findings: list[str]) -> str:
    """JSON with the findings in the shape's one list of strings; BadRequest for any other shape."""
    lists = [
        name
        for name, field in output.model_fields.items()
        if field.annotation in (list[str], tuple[str, ...])
    ]
    required = [name for name, field in output.model_fields.items() if field.is_required()]
    if len(lists) == 1 and set(required) <= set(lists):
        return json.dumps({lists[0]: findings}, ensure_ascii=False)
    raise BadRequest(reason="shape not served offline")
