"""Calls of Anthropic's API through its SDK, whose own retries are off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anthropic
import httpx2
from anthropic import AsyncAnthropic, AsyncStream

from memberintel.lib.per_loop import PerLoop
from memberintel.llm.backends import wire
from memberintel.llm.backends.anthropic.asking import body
from memberintel.llm.backends.anthropic.reading import Reading, named_error
from memberintel.llm.backends.base import RawDelta, Request
from memberintel.llm.errors import BadRequest, ModelError, TimedOut, Unavailable
from memberintel.llm.types import Embeddings

KEY, BASE_URL = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
HOME = "https://api.anthropic.com"
LAST_BYTES_SECONDS = 0.2


class Anthropic:
    """The backend of the routes `anthropic:...`. Reads its key and base URL from the environment."""

    name = "anthropic"

    def __init__(self) -> None:
        self._clients = PerLoop(_client, AsyncAnthropic.close)

    async def stream(self, request: Request) -> AsyncGenerator[RawDelta]:
        """The answer through the Messages API."""
        with _typed():
            client = await self._clients.get(_configuration())
            reading = Reading(self.name, request.model)
            # As they come on the wire: a model object for each piece would take most of the time of a stream.
            async with _begun(client, request) as response:
                events = AsyncStream.raw_events(response)
                try:
                    async for event in events:
                        for delta in reading.take(event.event, event.data):
                            yield delta
                        if reading.finished is not None:
                            await _read_out(events)
                            break
                except httpx2.TransportError:
                    if reading.finished is None:
                        raise
            if reading.finished is not None:
                yield reading.finished

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """BadRequest: this provider has no embeddings."""
        raise BadRequest(reason="no embeddings")

    async def window(self, model: str) -> int | None:
        """What the models endpoint says, if it says it."""
        with _typed():
            client = await self._clients.get(_configuration())
            return (await client.models.retrieve(model)).max_input_tokens


@dataclass(frozen=True)
class Access:
    """How the API is reached."""

    key: str = field(repr=False)
    base_url: str


def _configuration() -> Access:
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise wire.not_set_up("no key", KEY)
    return Access(key, os.environ.get(BASE_URL, "").strip() or HOME)


def _client(access: Access) -> AsyncAnthropic:
    return AsyncAnthropic(
        api_key=access.key,
        base_url=access.base_url,
        max_retries=0,
        timeout=wire.TIMEOUT,
        http_client=wire.http_client(),
        open_telemetry=False,  # its spans can be told to carry content
    )


@asynccontextmanager
async def _begun(client: AsyncAnthropic, request: Request) -> AsyncGenerator[httpx2.Response]:
    """The response as it begins. The SDK's own around it is let go: it holds the whole request."""
    raw = await client.messages.with_raw_response.create(**body(request), stream=True)
    response = raw.http_response
    del raw
    async with aclosing(response):
        yield response


async def _read_out(events: AsyncIterator[object]) -> None:
    """Takes the few bytes after the reason, so that the connection can be used again; not at any price."""
    try:
        async with asyncio.timeout(LAST_BYTES_SECONDS):
            async for _ in events:
                pass
    except TimeoutError:
        pass


@contextmanager
def _typed() -> Iterator[None]:
    """Puts what the SDK and its transport raise into our types, without a word of theirs."""
    try:
        yield
    except ModelError:
        raise
    except anthropic.APIStatusError as error:
        raise _status_error(error) from None
    except anthropic.APITimeoutError:
        raise TimedOut(reason="transport") from None
    except anthropic.APIConnectionError:
        raise Unavailable(reason="connection") from None
    except anthropic.APIError:
        raise Unavailable(reason="corrupt answer") from None
    except Exception as error:
        known = wire.transport_error(error)
        if known is None:
            raise
        raise known from None


def _status_error(error: anthropic.APIStatusError) -> ModelError:
    """By its type where that says more than the status."""
    headers = error.response.headers
    known = named_error(error.type or "", f"http {error.status_code}", wire.retry_after(headers))
    return known or wire.status_error(error.status_code, headers)
