"""Real web processes whose advisor follows a script, and people who talk to them over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

from memberintel.lib import sse
from tests import services
from tests.conftest import Person
from tests.waiting import PATIENCE, until

CSRF = "a" * 32


@dataclass
class Web:
    """A web process on a port of its own."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def leave(self) -> None:
        """Ask it to go."""
        self.process.send_signal(signal.SIGTERM)


@dataclass
class Webs:
    """Starts web processes; all are gone at the end."""

    folder: Path
    variables: Mapping[str, str]
    route: str = "scripted:fault"
    started: list[Web] = field(default_factory=list)

    @property
    def script(self) -> Path:
        """Where the script of the advisor stands; see the scripted backend."""
        return self.folder / "script.json"

    @property
    def gate(self) -> Path:
        """What a step may wait for: nothing more comes of an answer until this file is there."""
        return self.folder / "gate"

    def play(self, *plays: dict[str, Any], **others: Sequence[dict[str, Any]]) -> None:
        """What the advisor does from now on, and each of the `others` whose name a route has."""
        part = self.script.with_suffix(".part")  # a process never reads half of it
        part.write_text(json.dumps({"fault": list(plays), **others}))
        part.replace(self.script)

    def sent(self, name: str = "") -> list[str]:
        """Every request a model, or the one of that name, was sent, as text, in order."""
        calls = Path(f"{self.script}.calls")
        found = map(json.loads, calls.read_text().splitlines()) if calls.exists() else ()
        return [call["wire"] for call in found if name in ("", call["name"])]

    def begin(self, **variables: str) -> Web:
        """Start a process, without waiting for it."""
        log = self.folder / f"web-{len(self.started)}.log"
        with socket.create_server((services.HOST, 0)) as port, log.open("wb") as output:
            process = subprocess.Popen(
                services.uvicorn(port, "--timeout-graceful-shutdown", "20"),
                cwd=services.ROOT,
                env={
                    **self.variables,
                    "MEMBERINTEL_PROCESS": "web",
                    "DATABASE_POOL": "8",
                    "LLM_ROUTE_CHAT": self.route,
                    "MEMBERINTEL_LLM_SCRIPT": str(self.script),
                    "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
                    **variables,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[port.fileno()],
            )
            web = Web(process, services.address_of(port), log)
        self.started.append(web)
        return web

    def start(self) -> Web:
        """A process that answers."""
        return self.ready(self.begin())

    def ready(self, web: Web) -> Web:
        """The process, once it answers."""

        def answers() -> bool:
            assert web.process.poll() is None, web.log.read_text()
            try:
                return httpx.get(f"{web.url}/healthz", timeout=5).status_code == 200
            except httpx.TransportError:
                return False

        until(answers, saw=web.log.read_text)
        return web


@contextmanager
def webs(
    folder: Path, variables: Mapping[str, str] | None = None, *, route: str = "scripted:fault"
) -> Iterator[Webs]:
    """Web processes on the run's own services, or those that `variables` name; their chat takes that route."""
    made = Webs(folder, dict(os.environ) if variables is None else variables, route)
    try:
        yield made
    finally:
        for web in made.started:
            web.process.kill()
            web.process.wait()


@dataclass
class Browser:
    """A signed-in person's browser: cookies, the API, streams."""

    person: Person
    cookies: dict[str, str]

    @classmethod
    def of(cls, person: Person) -> Browser:
        """Signed in as that person."""
        session = import_module(settings.SESSION_ENGINE).SessionStore()
        session[SESSION_KEY] = str(person.user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = person.user.get_session_auth_hash()
        session.save()
        return cls(
            person, {settings.SESSION_COOKIE_NAME: session.session_key, settings.CSRF_COOKIE_NAME: CSRF}
        )

    def client(self, web: Web) -> httpx.Client:
        """A client of that process."""
        return httpx.Client(
            base_url=web.url,
            cookies=self.cookies,
            headers={"X-CSRFToken": CSRF, "Referer": web.url},
            timeout=PATIENCE,
        )

    def say(self, web: Web, text: str, *, key: str = "", **more: Any) -> httpx.Response:
        """Send a message."""
        with self.client(web) as client:
            given = {"text": text, "client_key": key or f"key-{uuid4()}"} | more
            return client.post("/api/v1/messages/", json=given)

    def page(self, web: Web, path: str) -> str:
        """Look at a page."""
        with self.client(web) as client:
            return client.get(path).text

    def post(self, web: Web, path: str, given: Mapping[str, Any] | None = None) -> httpx.Response:
        """Call the API."""
        with self.client(web) as client:
            return client.post(path, json=given or {})


@dataclass
class Reading:
    """What a page shows of an answer, built from the events as the page does."""

    text: str = ""
    last_id: str = ""
    end: tuple[str, Any] | None = None
    arrived: list[tuple[float, int]] = field(default_factory=list)
    reconnects: int = 0
    tools: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def take(self, event: sse.ServerEvent) -> None:
        """Show one event."""
        self.last_id = event.id or self.last_id
        data: Any = event.json()
        if event.event == "turn":
            self.text = data["text"]
        elif event.event == "text":
            self.text += data["text"]
        elif event.event == "tool":
            self.tools.append(data)
        elif event.event == "notice":
            self.notices.append(data["text"])
        elif event.event in ("done", "error"):
            self.end = (event.event, data)
        elif event.event == "reconnect":
            self.reconnects += 1
        self.arrived.append((time.monotonic(), len(self.text)))

    def saved_before(self, moment: float) -> int:
        """How many characters had been shown by then."""
        return max((length for at, length in self.arrived if at <= moment), default=0)

    def follow(
        self, browser: Browser, web: Web, address: str, *, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Read on from where it was, until the stream ends, breaks, or `stop`."""
        headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
        reader = sse.Reader()
        try:
            with browser.client(web) as client, client.stream("GET", address, headers=headers) as stream:
                for chunk in stream.iter_raw():
                    for event in reader.feed(chunk):
                        self.take(event)
                    if stop():
                        return
        except httpx.TransportError:
            return
