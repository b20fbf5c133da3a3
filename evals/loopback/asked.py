"""A request as both wire formats are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.loopback.prefixes import Block
from memberintel.llm.types import Prompt


class Refusal(Exception):
    """The request is answered with an error: an HTTP status, and why in a word for whoever reads the body."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"{status} {why}")
        self.status, self.why = status, why


@dataclass(frozen=True)
class Asked:
    """What is asked of which model; `shown` when its thoughts are to be shown."""

    model: str
    prompt: Prompt
    schema: dict[str, Any] | None
    blocks: Sequence[Block]
    most_tokens: int
    shown: bool = False
    stream: bool = True


@dataclass(frozen=True)
class Said:
    """An answer to be sent."""

    text: tuple[str, ...]
    reasoning: tuple[str, ...] = ()
    tools: tuple[tuple[str, str, str], ...] = ()
    usage: dict[str, int] = field(default_factory=dict)
