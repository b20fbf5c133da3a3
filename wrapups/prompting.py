"""The prompt that asks for a wrap-up. The texts are files, versioned by name: a changed text is a new file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from memberintel.lib import tokens
from memberintel.lib.extract import Line
from memberintel.lib.text import clean
from memberintel.llm.types import Message, Prompt

VERSION = "wrap_up_1"
TIGHT = "wrap_up_tight_1"

# Left free in the model's window for the instructions, the answer and the difference between tokenizers.
_SHARE_OF_WINDOW = 0.6
_OVERHEAD_TOKENS = 2500
_LINE_OVERHEAD_TOKENS = 12


@dataclass(frozen=True)
class Said:
    """One message of the transcript, as it stands in the log; `at` is aware."""

    line: Line
    at: datetime


@cache
def template(name: str) -> str:
    """The text of a prompt file."""
    return (Path(__file__).parent / "prompts" / f"{name}.txt").read_text().strip()


def first_prompt(said: Sequence[Said], zone: ZoneInfo, words: int) -> Prompt:
    """The request for the notes on this transcript, at most `words` words long."""
    return Prompt(
        system=(template(VERSION).replace("{words}", str(words)),),
        messages=(Message("user", transcript(said, zone)),),
    )


def tighter(prompt: Prompt, answer: str, had: int, words: int) -> Prompt:
    """The same request once more, after an answer that was too long."""
    ask = template(TIGHT).replace("{had}", str(had)).replace("{words}", str(words))
    return Prompt(prompt.system, (prompt.messages[0], Message("assistant", answer), Message("user", ask)))


def transcript(said: Sequence[Said], zone: ZoneInfo) -> str:
    """The messages, one a line, in the customer's local time; a text cannot end the transcript."""
    return "\n".join(("<transcript>", *(_written(one, zone) for one in said), "</transcript>"))


def parts(said: Sequence[Said], window: int) -> list[list[Said]]:
    """The transcript in stretches that each fit a model with a window of so many tokens, in order.

    A message too large for a whole stretch is itself cut, each piece under its number.
    """
    budget = max(int(window * _SHARE_OF_WINDOW) - _OVERHEAD_TOKENS, 400)
    stretches: list[list[Said]] = [[]]
    left = budget
    for piece, cost in _pieces(said, budget):
        if cost > left and stretches[-1]:
            stretches.append([])
            left = budget
        stretches[-1].append(piece)
        left -= cost
    return stretches


def _pieces(said: Sequence[Said], budget: int) -> Iterator[tuple[Said, int]]:
    for one in said:
        cost = tokens.count(one.line.text) + _LINE_OVERHEAD_TOKENS
        if cost <= budget:
            yield one, cost
            continue
        length = max(len(one.line.text) * budget // (cost * 2), 1)
        for start in range(0, len(one.line.text), length):
            text = one.line.text[start : start + length]
            piece = Said(Line(one.line.number, one.line.role, text), one.at)
            yield piece, tokens.count(text) + _LINE_OVERHEAD_TOKENS


def _written(one: Said, zone: ZoneInfo) -> str:
    text = clean(one.line.text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = " / ".join(part for part in (line.strip() for line in text.splitlines()) if part)
    local = one.at.astimezone(zone)
    return f"[{one.line.number}] {one.line.role} {local:%H:%M}: {text}"
