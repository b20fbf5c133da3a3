"""Calls of Gemini through google-genai, whose own retries are off: on Vertex AI where a project is set, else
with an API key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import google.auth
import httpx2
from google import genai
from google.auth import exceptions as auth_errors
from google.auth.credentials import Credentials
from google.genai import errors, types
from google.oauth2.credentials import Credentials as TokenCredentials

from memberintel.lib import tokens
from memberintel.lib.per_loop import PerLoop
from memberintel.llm.backends import wire
from memberintel.llm.backends.base import RawDelta, Request
from memberintel.llm.backends.gemini.asking import EMPTY, config, contents
from memberintel.llm.backends.gemini.reading import Reading
from memberintel.llm.errors import ModelError, Unavailable
from memberintel.llm.types import Embeddings, Usage

PROJECT, LOCATION, TOKEN = "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GEMINI_ACCESS_TOKEN"
KEY, BASE_URL = "GEMINI_API_KEY", "GEMINI_BASE_URL"
CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
VERTEX_VERSION, KEY_VERSION = "v1beta1", "v1beta"
TIMEOUT_MILLISECONDS = 330_000


@dataclass(frozen=True)
class Access:
    """How Gemini is reached: `project` is empty with an API key, `base_url` for Google's own hosts."""

    project: str
    location: str
    secret: str = field(repr=False)
    base_url: str


@dataclass(frozen=True)
class Client:
    """The SDK's client, and the connections under it, which are ours to close."""

    sdk: genai.Client
    connections: httpx2.AsyncClient
    opened: wire.Opened

    async def close(self) -> None:
        """Closes all connections."""
        await self.connections.aclose()


class Gemini:
    """The backend of the routes `gemini:...`. Reads keys and base URL from the environment."""

    name = "gemini"

    def __init__(self) -> None:
        self._clients = PerLoop(_client, Client.close)

    async def stream(self, request: Request) -> AsyncGenerator[RawDelta]:
        """The answer through streamGenerateContent."""
        with _typed():
            client = await self._client()
            reading = Reading(self.name, request.model)
            chunks = await client.sdk.aio.models.generate_content_stream(
                model=request.model,
                contents=list[types.ContentUnion](contents(request.prompt, request.model)),
                config=config(request),
            )
            try:
                async for chunk in chunks:
                    for delta in reading.take(chunk):
                        yield delta
            except httpx2.TransportError:
                if reading.finished is None:
                    raise
            finally:
                await client.opened.close()
            if reading.finished is not None:
                yield reading.finished

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """Vectors of the embedding API. Tokens are counted here where the provider reports none."""
        with _typed():
            client = await self._client()
            sent = [wire.plain(text) if text.strip() else EMPTY for text in texts]
            found = await client.sdk.aio.models.embed_content(
                model=model, contents=list[types.ContentUnion](sent)
            )
            vectors = tuple(tuple(each.values or ()) for each in found.embeddings or ())
            if len(vectors) != len(texts) or not all(vectors):
                raise Unavailable(reason="corrupt answer")
            told = [each.statistics for each in found.embeddings or ()]
            counted = [int(each.token_count) for each in told if each and each.token_count]
            whole = found.usage_metadata.prompt_token_count if found.usage_metadata else None
            if whole:
                counted = [whole]
            elif len(counted) != len(sent):
                counted = await asyncio.to_thread(lambda: [tokens.count(text) for text in sent])
            return Embeddings(vectors, Usage(sum(counted)), model, self.name)

    async def window(self, model: str) -> int | None:
        """What the models endpoint says; on Vertex AI it says nothing, and settings have a table."""
        with _typed():
            client = await self._client()
            if client.sdk.vertexai:
                return None
            return (await client.sdk.aio.models.get(model=model)).input_token_limit

    async def _client(self) -> Client:
        access = _access()
        if access.project and not access.secret:
            # Reading a key file, or asking the machine we run on, may take a while.
            await asyncio.to_thread(_machine_credentials, os.environ.get(CREDENTIALS, ""))
        return await self._clients.get(access)


def _access() -> Access:
    project, key = _variable(PROJECT), _variable(KEY)
    if project:
        location = _variable(LOCATION) or "global"
        return Access(project, location, _variable(TOKEN), _variable(BASE_URL))
    if key:
        return Access("", "", key, _variable(BASE_URL))
    raise wire.not_set_up("no key", PROJECT, KEY)


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


@cache
def _machine_credentials(path: str) -> Credentials:
    """Application Default Credentials: a key file where one is named, else the machine's own identity."""
    found: Credentials = google.auth.default(scopes=SCOPES)[0]
    return found


def _client(access: Access) -> Client:
    opened = wire.Opened()
    connections = wire.http_client(opened)
    # All of it explicit: what is left out, the SDK looks for in variables of its own. A client of ours keeps
    # it from switching to aiohttp where that can be imported.
    options = types.HttpOptions(
        base_url=access.base_url or None,
        api_version=VERTEX_VERSION if access.project else KEY_VERSION,
        timeout=TIMEOUT_MILLISECONDS,
        httpx_async_client=connections,
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    if not access.project:
        sdk = genai.Client(vertexai=False, api_key=access.secret, http_options=options)
        return Client(sdk, connections, opened)
    credentials: Credentials = (
        TokenCredentials(token=access.secret)  # type: ignore[no-untyped-call]
        if access.secret
        else _machine_credentials(os.environ.get(CREDENTIALS, ""))
    )
    sdk = genai.Client(
        vertexai=True,
        project=access.project,
        location=access.location,
        credentials=credentials,
        http_options=options,
    )
    return Client(sdk, connections, opened)


@contextmanager
def _typed() -> Iterator[None]:
    """Puts what the SDK and its transport raise into our types, without a word of theirs."""
    try:
        yield
    except ModelError:
        raise
    except errors.APIError as error:
        raise _api_error(error) from None
    except auth_errors.TransportError:
        raise Unavailable(reason="credentials") from None
    except auth_errors.GoogleAuthError:
        raise wire.not_set_up("credentials", CREDENTIALS, KEY) from None
    except errors.UnknownApiResponseError:
        raise Unavailable(reason="corrupt answer") from None
    except Exception as error:
        known = wire.transport_error(error)
        if known is None:
            raise
        raise known from None


def _api_error(error: errors.APIError) -> ModelError:
    status = error.code if isinstance(error.code, int) else 500
    # A key they do not know is a bad request to them.
    if status == 400 and "API_KEY_INVALID" in str(error.details):
        return wire.not_allowed("http 400 key")
    headers = getattr(error.response, "headers", None)
    return wire.status_error(status, headers)
