"""What every provider looks like to the seam. One suite of tests holds all of them to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from memberintel.llm.types import Delta, Embeddings, Prompt, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One call of one model. `output` asks for JSON of that shape, by the provider's own mechanism.

    `reasoning` asks the model to think first and to show it. Without, it thinks as little as it can be made to;
    what it thinks all the same comes on top of `max_output_tokens`. `answer_only`: it may not call the tools of the
    prompt, which stay where they are, since they are a part of what is cached.
    """

    purpose: str
    model: str
    prompt: Prompt
    output: type[BaseModel] | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning: bool = False
    answer_only: bool = False


@dataclass(frozen=True, slots=True)
class UsageSoFar:
    """Tokens the provider has reported before the end. Kept by the seam for calls that are cut off."""

    usage: Usage


RawDelta = Delta | UsageSoFar


class Backend(Protocol):
    """A provider.

    `stream` yields pieces as they come and `Finished` once, last, when the provider said why it stopped; a
    stream that merely ends yields none. It raises nothing but ModelError, whose `reason` holds no text of the
    prompt or the answer; a refusal is `Refused`. It neither retries nor times out: the seam does, by
    cancelling, whereupon the stream closes its connection. It makes no log line with content.
    """

    name: str

    def stream(self, request: Request) -> AsyncGenerator[RawDelta]:
        """The answer to `request`, piece by piece."""
        ...

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """One vector for each text. ModelError when the provider has no embeddings."""
        ...

    async def window(self, model: str) -> int | None:
        """Input tokens `model` takes, where the provider tells; else None."""
        ...
