"""The product as people use it: a real web server, a real worker, a real Chromium."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from django.db import connections
from django.test import Client
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    async_playwright,
    expect,
)

from tests import services
from tests.conftest import Person, make_person
from tests.waiting import PATIENCE, until

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
MILLISECONDS = PATIENCE * 1_000  # anything may take to show
expect.set_options(timeout=MILLISECONDS)


@dataclass
class Site:
    """The running product: where it is, what its model says, and a browser to look at it with."""

    address: str
    script: Path
    browser: Browser

    def says(self, *steps: list[dict[str, Any]]) -> None:
        """The model plays these steps, call by call, the last ones for ever."""
        part = self.script.with_suffix(".part")  # a process never reads half of it
        part.write_text(json.dumps({"browser": [{"steps": each} for each in steps]}))
        part.replace(self.script)

    @property
    def gate(self) -> Path:
        """What a step may wait for: nothing more comes of an answer until this file is there."""
        return self.script.with_name("gate")


@dataclass
class Visitor:
    """Somebody's browser. `complaints` is what its console complained about, and every dialog that came up."""

    context: BrowserContext
    site: Site
    complaints: list[str] = field(default_factory=list)

    async def page(self, path: str = "/chat/") -> Page:
        """A new tab at that path."""
        page = await self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._asked)
        await page.goto(self.site.address + path)
        return page

    def forgive(self, words: str) -> None:
        """Forget the complaints that a test brought about itself."""
        self.complaints = [each for each in self.complaints if words not in each]

    async def _asked(self, dialog: Dialog) -> None:
        self.complaints.append(f"a dialog came up: {dialog.message}")
        await dialog.dismiss()

    def _heard(self, message: ConsoleMessage) -> None:
        if (
            message.type in {"error", "warning"}
            and "the server responded with a status of 4" not in message.text
        ):
            self.complaints.append(message.text)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    """Web server and worker on this run's database, with a queue and a model of their own; one Chromium for all."""
    if CHROMIUM is None:
        pytest.skip("BROWSER TESTS SKIPPED: there is no Chromium here (Debian: apt-get install chromium)")
    script = tmp_path_factory.mktemp("browser") / "script.json"
    with _running(script) as address:
        async with async_playwright() as player:
            browser = await player.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox"], timeout=MILLISECONDS
            )
            found = Site(address, script, browser)
            found.says([{"offline": True}])
            yield found
            await browser.close()


@contextmanager
def _running(script: Path) -> Iterator[str]:
    """The address of a web server that has a worker beside it."""
    env = {
        **os.environ,
        "MEMBERINTEL_EMBEDDED": "1",
        "MEMBERINTEL_DATA": str(script.parent),
        "MEMBERINTEL_LLM_SCRIPT": str(script),
        "LLM_ROUTE_CHAT": "scripted:browser",
        "REDIS_URL": _own_queue(os.environ["REDIS_URL"]),
        "DATABASE_POOL": "8",
        "LOG_LEVEL": "WARNING",
    }
    worker = [sys.executable, "-m", "celery", "--app", "memberintel", "--quiet", "worker"]
    worker += ["--queues", "default,wrapups", "--pool", "solo", "--loglevel", "WARNING"]
    with socket.create_server((services.HOST, 0)) as port:
        web = services.uvicorn(port, "--timeout-graceful-shutdown", "3")
        parts = [
            subprocess.Popen(
                command,
                cwd=services.ROOT,
                env={**env, "MEMBERINTEL_PROCESS": process},
                pass_fds=[port.fileno()] if process == "web" else [],
            )
            for command, process in ((web, "web"), (worker, "worker"))
        ]
        address = services.address_of(port)
    try:
        until(lambda: _answers(address, parts[0]))
        yield address
    finally:
        for part in parts:
            part.terminate()
        for part in parts:
            try:
                part.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                part.kill()
                part.wait()


def _own_queue(redis_url: str) -> str:
    """A Redis database no other test process puts jobs into."""
    number = int("".join(filter(str.isdigit, os.environ.get("PYTEST_XDIST_WORKER", ""))) or 0)
    return f"{redis_url.partition('?')[0]}?db={8 + number % 8}"


def _answers(address: str, web: subprocess.Popen[bytes]) -> bool:
    assert web.poll() is None, "the web server did not start"
    try:
        return httpx.get(f"{address}/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(autouse=True)
def _offline_again(site: Site) -> Iterator[None]:
    site.gate.unlink(missing_ok=True)
    yield
    site.says([{"offline": True}])


@pytest.fixture
def pro(site: Site) -> Person:
    """A fresh Pro customer."""
    return make_person(tier="pro", name="browser")


@pytest.fixture
def free(site: Site) -> Person:
    """A fresh Free customer."""
    return make_person(tier="free", name="browser")


@asynccontextmanager
async def visit(site: Site, person: Person | None = None, **options: Any) -> AsyncIterator[Visitor]:
    """A browser, signed in as that person; nothing may be left in its console at the end."""
    cookies = _signed_in(person, site) if person else None
    context = await site.browser.new_context(**options)
    context.set_default_timeout(MILLISECONDS)
    try:
        if cookies:
            await context.add_cookies(cookies)  # type: ignore[arg-type]
        visitor = Visitor(context, site)
        yield visitor
    finally:
        await context.close()
    assert visitor.complaints == []


class Wire:
    """A cable between browser and server that can be cut: every connection over it breaks, none is made."""

    def __init__(self, site: Site) -> None:
        self.host, _, port = site.address.removeprefix("http://").partition(":")
        self.port = int(port)
        self.address = ""
        self.whole = True
        self.ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """From now on nothing gets through."""
        self.whole = False
        for end in self.ends:
            end.transport.abort()

    def mend(self) -> None:
        """From now on everything does again."""
        self.whole = True

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        if not self.whole:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(self.host, self.port)
        mine = {writer, far_writer}
        self.ends |= mine
        await asyncio.gather(_pour(reader, far_writer), _pour(far_reader, writer))
        self.ends -= mine


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(65_536):
            into.write(piece)
            await into.drain()
    into.close()


@asynccontextmanager
async def wire(site: Site) -> AsyncIterator[Wire]:
    """A cable to the site, with an address of its own."""
    laid = Wire(site)
    server = await asyncio.start_server(laid.carry, "127.0.0.1", 0)
    laid.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield laid
    finally:
        server.close()
        laid.cut()


async def say(page: Page, text: str) -> None:
    """Write a message and send it with Enter."""
    await page.get_by_label("Your message").fill(text)
    await page.keyboard.press("Enter")


async def answered(page: Page, times: int = 1, text: str = "") -> None:
    """Wait for that many whole answers; with that text, if one is given."""
    await expect(page.locator('[data-state="complete"]')).to_have_count(times)
    if text:
        await expect(page.locator(".prose")).to_have_text(text)


def aside[T](work: Callable[[], T]) -> T:
    """Do database work on a thread of its own: the tests here are coroutines."""

    def piece() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(piece).result()


def _signed_in(person: Person, site: Site) -> list[dict[str, str]]:
    client = Client()
    aside(lambda: client.force_login(person.user, backend="django.contrib.auth.backends.ModelBackend"))
    return [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.address}]
