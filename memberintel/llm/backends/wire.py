"""What the providers reached over HTTP share: connections, and failures put into our types."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from weakref import WeakKeyDictionary

import httpx2
from anthropic import DefaultAioHttpClient
from pydantic import ValidationError

from memberintel.lib import clock
from memberintel.llm.errors import BadRequest, ModelError, Overloaded, RateLimited, TimedOut, Unavailable

# The seam's deadlines are shorter and are the ones that count; these end what a mistake there would leave.
TIMEOUT = httpx2.Timeout(connect=10.0, read=330.0, write=60.0, pool=10.0)
LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
LONGEST_RETRY_AFTER = 24 * 60 * 60.0

# What the SDKs and their transport log below a warning includes whole requests.
for _talkative in ("anthropic", "google_genai", "httpx2", "httpcore2"):
    logging.getLogger(_talkative).setLevel(logging.WARNING)


@cache
def certificates() -> ssl.SSLContext:
    """Read once: reading them anew for each client takes longer than a request."""
    return httpx2.create_ssl_context()


def http_client(opened: Opened | None = None) -> httpx2.AsyncClient:
    """A client for one event loop; `opened` is told of each response."""
    # Redirects are not followed: a key must not travel to another host.
    return DefaultAioHttpClient(
        verify=certificates(),
        timeout=TIMEOUT,
        limits=LIMITS,
        follow_redirects=False,
        event_hooks={"response": [opened.note]} if opened else None,
    )


class Opened:
    """The newest response of each task, for an SDK that lets go of an abandoned stream only when it is collected."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[asyncio.Task[object], httpx2.Response] = WeakKeyDictionary()

    async def note(self, response: httpx2.Response) -> None:
        """Called by the client when a response begins."""
        if (task := asyncio.current_task()) is not None:
            self._of[task] = response

    async def close(self) -> None:
        """Lets go of the running task's response."""
        task = asyncio.current_task()
        if task is not None and (response := self._of.pop(task, None)) is not None:
            await response.aclose()


def plain(text: str) -> str:
    """The text without lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- failures --------------------------------------------------------------------------------------------


def status_error(status: int, headers: Mapping[str, str] | None = None) -> ModelError:
    """What an HTTP status of a provider means."""
    reason = f"http {status}"
    if status == 429:
        return RateLimited(reason=reason, retry_after=retry_after(headers or {}))
    if status in (503, 529):
        return Overloaded(reason=reason, retry_after=retry_after(headers or {}))
    if status in (408, 504):
        return TimedOut(reason=reason)
    if status in (401, 402, 403):
        return not_allowed(reason)
    if 400 <= status < 500 and status not in (409, 425):
        return BadRequest(reason=reason)
    return Unavailable(reason=reason)


def not_allowed(reason: str) -> Unavailable:
    """The provider does not serve us with the key we have: trying again changes nothing."""
    return Unavailable(
        "The model behind the advisor does not accept our key. Our staff can see why.",
        reason=reason,
        retryable=False,
    )


def not_set_up(reason: str, *names: str) -> Unavailable:
    """A variable is missing or of no use."""
    return Unavailable(
        f"No model is set up for this. Set {' or '.join(names)}.", reason=reason, retryable=False
    )


def transport_error(error: Exception) -> ModelError | None:
    """What a failure below HTTP, or a body that cannot be read, means; None for any other exception.

    Once an answer streams, the SDKs let these through as they are.
    """
    if isinstance(error, httpx2.TimeoutException):
        return TimedOut(reason="transport")
    if isinstance(error, httpx2.TransportError | httpx2.StreamError | OSError):
        return Unavailable(reason="connection")
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | ValidationError | httpx2.DecodingError):
        return Unavailable(reason="corrupt answer")
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait, from `retry-after-ms` or `Retry-After` (seconds or a date)."""
    milliseconds, given = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            seconds = float(milliseconds) / 1000
        elif given is not None:
            seconds = _seconds(given)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds <= LONGEST_RETRY_AFTER else None


def _seconds(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        at = parsedate_to_datetime(given)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (at - clock.now()).total_seconds())
