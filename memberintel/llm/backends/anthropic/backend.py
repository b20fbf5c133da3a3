"""Calls of Anthropic's API through its SDK, whose own retries are off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anthropic
import httpx2
from anthropic import AsyncAnthropic, AsyncStream
from anthropic.types import RawMessageStreamEvent

from memberintel.llm.backends import wire
from memberintel.llm.backends.anthropic.asking import body
from memberintel.llm.backends.anthropic.reading import Reading
from memberintel.llm.backends.base import RawDelta, Request
from memberintel.llm.errors import BadRequest, ModelError, Overloaded, RateLimited, TimedOut, Unavailable
from memberintel.llm.types import Embeddings

KEY, BASE_URL = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
HOME = "https://api.anthropic.com"
LAST_BYTES_SECONDS = 0.2


class Anthropic:
    """The backend of the routes `anthropic:...`. Reads its key and base URL from the environment."""

    name = "anthropic"

    def __init__(self) -> None:
        self._clients = wire.PerLoop(_client, AsyncAnthropic.close)

    async def stream(self, request: Request) -> AsyncGenerator[RawDelta]:
        """The answer through the Messages API."""
        with _typed():
            client = await self._clients.get(_configuration())
            reading = Reading(self.name, request.model)
            async with await client.messages.create(**body(request), stream=True) as events:
                try:
                    async for event in events:
                        for delta in reading.take(event):
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


async def _read_out(events: AsyncStream[RawMessageStreamEvent]) -> None:
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
    """By its type where that says more than the status: an error inside a stream comes with the status 200."""
    asked = wire.retry_after(error.response.headers) if error.status_code != 200 else None
    reason = f"http {error.status_code}" if error.status_code != 200 else f"stream {error.type}"
    match error.type:
        case "overloaded_error":
            return Overloaded(reason=reason, retry_after=asked)
        case "rate_limit_error":
            return RateLimited(reason=reason, retry_after=asked)
        case "timeout_error":
            return TimedOut(reason=reason)
        case "authentication_error" | "permission_error" | "billing_error":
            return wire.not_allowed(reason)
        case "invalid_request_error" | "not_found_error" | "request_too_large":
            return BadRequest(reason=reason)
    if error.status_code == 200:
        return Unavailable(reason="stream error")
    return wire.status_error(error.status_code, error.response.headers)
