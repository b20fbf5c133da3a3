"""The prompt that asks for a wrap-up. The texts are files, versioned by name: a changed text is a new file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from brain.domain.prompt import day_in_words
from memberintel.lib import tokens
from memberintel.lib.extract import Line
from memberintel.lib.text import clean
from memberintel.llm.types import Message, Prompt
from wrapups.domain.open_items import Earlier

VERSION = "wrap_up_2"
TIGHT = "wrap_up_tight_1"
LANGUAGE = "wrap_up_language_1"

# Left free in the model's window for the instructions, the answer and the difference between tokenizers.
_SHARE_OF_WINDOW = 0.6
_OVERHEAD_TOKENS = 2500
_LINE_OVERHEAD_TOKENS = 12
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Said:
    """One message of the transcript; `at` is aware, it stands in the log from `seq` through `through`."""

    line: Line
    at: datetime
    seq: int = 0
    through: int = 0


@cache
def template(name: str) -> str:
    """The text of a prompt file."""
    return (Path(__file__).parent / "prompts" / f"{name}.txt").read_text().strip()


def first_prompt(said: Sequence[Said], zone: ZoneInfo, words: int, earlier: Sequence[Earlier] = ()) -> Prompt:
    """The request for the notes on this transcript, at most `words` words long, with what was open before it."""
    blocks = [*([open_before(earlier)] if earlier else []), transcript(said, zone)]
    return Prompt(
        system=(template(VERSION).replace("{words}", str(words)),),
        messages=(Message("user", "\n".join(blocks)),),
    )


def open_before(earlier: Sequence[Earlier]) -> str:
    """The open items of earlier sessions, one a line; a text cannot end the block."""
    lines = (f"[{each.short}] {each.day}: {flat(each.text)}" for each in earlier)
    return "\n".join(("<earlier_open_items>", *lines, "</earlier_open_items>"))


def tighter(prompt: Prompt, answer: str, had: int, words: int) -> Prompt:
    """The same request once more, after an answer that was too long."""
    ask = template(TIGHT).replace("{had}", str(had)).replace("{words}", str(words))
    return _once_more(prompt, answer, ask)


def in_their_language(prompt: Prompt, answer: str, words: int) -> Prompt:
    """The same request once more, after an answer in another language than the customer's."""
    return _once_more(prompt, answer, template(LANGUAGE).replace("{words}", str(words)))


def _once_more(prompt: Prompt, answer: str, ask: str) -> Prompt:
    return Prompt(prompt.system, (prompt.messages[0], Message("assistant", answer), Message("user", ask)))


def transcript(said: Sequence[Said], zone: ZoneInfo) -> str:
    """The messages, one a line, in the customer's local time, under the days; a text cannot end the transcript."""
    lines: list[str] = []
    day: date | None = None
    for one in said:
        local = one.at.astimezone(zone)
        if local.date() != day:
            day = local.date()
            lines.append(f"-- {_WEEKDAYS[day.weekday()]}, {day_in_words(day)} --")
        lines.append(_written(one, local))
    return "\n".join(("<transcript>", *lines, "</transcript>"))


def budget(window: int, beside: int = 0) -> int:
    """Tokens of transcript that fit one request to a model with that window, with `beside` tokens of other things."""
    return max(int(window * _SHARE_OF_WINDOW) - _OVERHEAD_TOKENS - beside, 400)


def stretch(said: Iterable[Said], most: int) -> Iterator[Said]:
    """The first messages as far as they fit `most` tokens; at least one. It reads no more than it gives, and one.

    A message too large for a whole stretch is given whole, alone: see `pieces`.
    """
    left = most
    for number, one in enumerate(said):
        left -= tokens.count(one.line.text) + _LINE_OVERHEAD_TOKENS
        if left < 0 and number:
            return
        yield one


def pieces(said: Sequence[Said], most: int) -> list[list[Said]]:
    """A stretch as requests are made of it: itself, unless one message is too large and is cut, each piece under its
    number."""
    if len(said) > 1 or not said:
        return [list(said)]
    [one] = said
    cost = tokens.count(one.line.text) + _LINE_OVERHEAD_TOKENS
    if cost <= most:
        return [[one]]
    length = max(len(one.line.text) * most // (cost * 2), 1)
    starts = range(0, len(one.line.text), length)
    return [
        [replace(one, line=replace(one.line, text=one.line.text[start : start + length]))] for start in starts
    ]


def _written(one: Said, local: datetime) -> str:
    return f"[{one.line.number}] {one.line.role} {local:%H:%M}: {flat(one.line.text)}"


def flat(text: str) -> str:
    """A message as one line that cannot be taken for more than that: escaped, " / " where it had lines."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " / ".join(part for part in (line.strip() for line in text.splitlines()) if part)
