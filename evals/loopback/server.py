"""Runs the server in a thread of this process."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from evals.loopback.app import Loopback
from evals.loopback.scenario import Scenario

HOST = "127.0.0.1"
START_SECONDS = 60.0

# The variables that send both SDKs here.
KEY = "loopback"


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    url: str
    scenario: Scenario

    def anthropic(self) -> dict[str, str]:
        """The variables that make this server Anthropic's API."""
        return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.url}

    def vertex(self) -> dict[str, str]:
        """The variables that make it Gemini on Vertex AI."""
        return {
            "GOOGLE_CLOUD_PROJECT": "loopback",
            "GOOGLE_CLOUD_LOCATION": "europe-west1",
            "GEMINI_ACCESS_TOKEN": KEY,
            "GEMINI_BASE_URL": self.url,
        }

    def gemini_with_key(self) -> dict[str, str]:
        """The variables that make it Gemini with an API key."""
        return {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": self.url}


@contextmanager
def running(port: int = 0) -> Iterator[Server]:
    """The server, listening on this machine alone, until the block is left."""
    # A broken connection is what it is asked for at times: no cause for a traceback.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    listener = socket.create_server((HOST, port))
    app = Loopback()
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", ws="none", loop="asyncio",
        timeout_graceful_shutdown=1, timeout_keep_alive=60,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        _await(server)
        yield Server(f"http://{HOST}:{listener.getsockname()[1]}", app.scenario)
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)
        listener.close()


def _await(server: uvicorn.Server) -> None:
    until = time.monotonic() + START_SECONDS
    while not server.started:
        if time.monotonic() > until:
            raise RuntimeError("the loopback server did not start")
        time.sleep(0.01)
