"""Which extractive answer serves which purpose, and how it is streamed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence

from django.conf import settings

from memberintel.lib import tokens
from memberintel.llm.backends.base import RawDelta, Request
from memberintel.llm.backends.offline import advice, diary, notes
from memberintel.llm.errors import BadRequest
from memberintel.llm.types import Embeddings, Finished, TextDelta, Usage

WORDS_PER_PIECE = 2
_WORD = re.compile(r"\s*\S+\s*")


class Offline:
    """The backend of the routes `offline:...`."""

    name = "offline"

    async def stream(self, request: Request) -> AsyncGenerator[RawDelta]:
        """A chat answer in pieces of two words, any other answer as one piece. BadRequest for the few purposes
        that cannot be served by quoting."""
        # Off the event loop: a long session takes a while to read and to count.
        text, usage = await asyncio.to_thread(_answer, request)
        chat = request.purpose == "chat"
        for number, piece in enumerate(pieces(text) if chat else [text] if text else []):
            if chat and number:
                await asyncio.sleep(settings.LLM_OFFLINE_PACE_SECONDS)
            yield TextDelta(piece)
        yield Finished("end", usage, request.model, self.name)

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """Vectors of our own making, under the name of how they were made, whatever the route calls it."""
        return await asyncio.to_thread(_embedded, texts)

    async def window(self, model: str) -> int | None:
        """Not told: the table in settings says."""
        return None


def _embedded(texts: Sequence[str]) -> Embeddings:
    from memberintel.llm.backends.offline import vectors  # with it comes numpy: only where it is used

    used = Usage(sum(map(tokens.count, texts)))
    return Embeddings(tuple(map(vectors.vector, texts)), used, vectors.MODEL, Offline.name)


def pieces(text: str) -> list[str]:
    """The text cut between words; joined again it is the text."""
    words = _WORD.findall(text)
    return ["".join(words[at : at + WORDS_PER_PIECE]) for at in range(0, len(words), WORDS_PER_PIECE)]


def _answer(request: Request) -> tuple[str, Usage]:
    text = _SERVED.get(request.purpose, _cannot)(request)
    return text, Usage(input_tokens=request.prompt.estimate(), output_tokens=tokens.count(text))


def _cannot(request: Request) -> str:
    raise BadRequest(
        "This needs a model; the offline advisor cannot do it.", reason="not served offline", retryable=False
    )


_SERVED: dict[str, Callable[[Request], str]] = {
    "chat": lambda request: advice.answer(request.prompt),
    "wrap_up": lambda request: notes.wrap_up(request.prompt),
    "compact": lambda request: notes.compact(request.prompt),
    "distill": lambda request: notes.distill(request.prompt, request.output),
    "journal": lambda request: diary.passage(request.prompt),
    "mood": lambda request: diary.mood(request.prompt),
    "title": lambda request: notes.title(request.prompt),
}
