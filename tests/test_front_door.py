"""A body longer than any we take is refused before it is read, wherever it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.conf import LazySettings

from memberintel.asgi import application


async def asked(path: str, pieces: AsyncIterator[dict[str, Any]], *headers: tuple[bytes, bytes]) -> list[Any]:
    """What the application sends for a POST whose body comes in these pieces."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> Any:
        return await anext(pieces)

    async def send(message: Any) -> None:
        sent.append(message)

    await application(scope, receive, send)
    return sent


class Pieces:
    """A body without an end; counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            self.taken += 100_000
            yield {"type": "http.request", "body": b"x" * 100_000, "more_body": True}


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("path", ["/brain/heartbeat/", "/api/v1/messages/"])
async def test_a_gigabyte(announced: bool, path: str, settings: LazySettings) -> None:
    settings.REQUEST_LIMIT_BYTES = 1_000_000
    pieces = Pieces()
    headers = [(b"content-length", b"1000000000")] if announced else []
    start, body = await asked(path, aiter(pieces), *headers)
    assert start["status"] == 413
    assert b"A request may have 1 MB. Nothing was kept." in body["body"]
    assert (b"problem" in dict(start["headers"])[b"content-type"]) is path.startswith("/api/")
    assert pieces.taken <= (0 if announced else 1_100_000)
