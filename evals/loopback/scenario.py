"""What the server was told to do, and what it was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evals.loopback.prefixes import Prefixes

End = Literal[
    "end", "max_tokens", "refusal", "blocked", "malformed", "silence", "stall", "drop", "corrupt", "error"
]
SETTLE_SECONDS = 60.0


@dataclass(frozen=True)
class Play:
    """What happens in one call. Without `text` the advisor's own answer is given.

    `end`: how it ends. `end`, `max_tokens`; `refusal` by the model, `blocked` before it (Gemini; else a refusal);
    `malformed`, a tool call that is no JSON; `silence`, the stream just ends; `stall`, nothing more comes;
    `drop`, the connection breaks; `corrupt`, a piece that cannot be read; `error`, with `status`: as the
    response's status where nothing was sent before, else as an error inside the stream.
    `tools` are (id, name, arguments as JSON text). `first_after` and `pace` are seconds before the first piece,
    and before each further one.
    """

    text: tuple[str, ...] | None = None
    reasoning: tuple[str, ...] = ()
    tools: tuple[tuple[str, str, str], ...] = ()
    end: End = "end"
    status: int = 500
    retry_after: str | None = None
    first_after: float = 0.0
    pace: float = 0.0

    @classmethod
    def read(cls, given: dict[str, Any]) -> Play:
        """From JSON, where tuples are lists."""
        return cls(**{key: _frozen(value) for key, value in given.items()})


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class Call:
    """A request for an answer: which API, which model, its body as it came over the wire, the client's port,
    which tells connections apart, and the time it came."""

    api: Literal["messages", "vertex", "key"]
    model: str
    body: bytes
    port: int = 0
    at: float = 0.0


class Scenario:
    """Shared between the server and whoever steers it, in whatever thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.reset()

    def reset(self) -> None:
        """Forgets everything: plays, calls, and what the caches hold."""
        with self._changed:
            self._plays: list[Play] = []
            self._calls: list[Call] = []
            self._closed = 0
            self.prefixes = Prefixes()

    def play(self, plays: Sequence[Play]) -> None:
        """One play a call; the last one is repeated. Forgets the calls before."""
        with self._changed:
            self._plays, self._calls, self._closed = list(plays), [], 0

    def begin(self, call: Call) -> Play:
        """Notes a call; what is to happen in it."""
        with self._changed:
            self._calls.append(call)
            self._changed.notify_all()
            if not self._plays:
                return Play()
            return self._plays[min(len(self._calls), len(self._plays)) - 1]

    def end(self) -> None:
        """Notes that a call is over: its connection is let go."""
        with self._changed:
            self._closed += 1
            self._changed.notify_all()

    def calls(self) -> list[Call]:
        """The calls so far, in order."""
        with self._changed:
            return list(self._calls)

    def closed(self) -> int:
        """How many calls are over, once all are, or as many as are after a minute."""
        until = time.monotonic() + SETTLE_SECONDS
        with self._changed:
            while self._closed < len(self._calls) and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._closed
