"""Answers that stream through one web process: how soon a model is asked, what is saved when, and the memory.

The process is served as in production, by the web's login; the model's server and whoever follows the streams are
processes of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import psutil

from evals.loopback.server import HOST
from evals.performance.log import customer
from evals.performance.results import Figure, at_least, at_most
from memberintel.accounts import actions
from memberintel.embedded import children
from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from sessions import log

RATE, SECONDS = 30, 30  # pieces a second and stream, and how long it flows
SDK, SCRIPTED, PROBES, ALONE = 100, 300, 20, 40
FLUSH, GRACE = 2.0, 0.5  # how often what came is saved, and how late that may be
START_SECONDS = 60.0
PIECE = "the members "
QUIET = {"LLM_ROUTE_TITLE": "offline:extractive", "LLM_ROUTE_DISTILL": "offline:extractive"}


@dataclass(frozen=True)
class Person:
    """A customer and what lets a program speak for them."""

    who: Scope
    token: str


@dataclass
class Talk:
    """A message and its answer: when it was sent, whether its text has begun to come and has come to its end."""

    person: Person
    mark: str
    sent: float = 0.0
    session: UUID | None = None
    flows: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False


def figures() -> Iterator[Figure]:
    """100 streams through a provider's SDK, 300 through a scripted model."""
    with ExitStack() as stack:
        model = stack.enter_context(_model())
        yield from _through_sdk(model)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        steps = [{"delay": 1 / RATE, "text": PIECE}] * (RATE * SECONDS)
        script.write_text(json.dumps({"long": [{"steps": steps}]}))
        yield from _through_script(script)


def _through_sdk(model: str) -> Iterator[Figure]:
    environment = {"ANTHROPIC_API_KEY": "loopback", "ANTHROPIC_BASE_URL": model, **QUIET}
    with _web(environment) as (url, web):
        _play(model, [PIECE], pace=0.0)
        person = _people(1)[0]
        asyncio.run(_talk_all(url, [_new_talk(person) for _ in range(3)], gap=0.0, at_once=False))
        _play(model, [PIECE], pace=0.0)
        talks = [_new_talk(person) for _ in range(ALONE)]
        asyncio.run(_talk_all(url, talks, gap=0.0, at_once=False))
        yield at_most(
            "from a message sent to the provider asked, one stream, p95",
            _p95(_delays(model, talks)),
            25,
            "ms",
        )
        people, probing = _people(SDK), _people(PROBES)
        _play(model, [PIECE] * (RATE * SECONDS), pace=1 / RATE)
        before = web.memory_info().rss
        peak, talks, probes = asyncio.run(_crowd(url, people, probing, web))
        yield at_most(f"the same beside {SDK} streams, p95", _p95(_delays(model, probes)), 100, "ms")
        yield from _kept(
            f"{SDK} streams of {RATE} pieces a second, SDK", talks, (peak - before) / (SDK + PROBES)
        )


def _through_script(script: Path) -> Iterator[Figure]:
    environment = {"LLM_ROUTE_CHAT": "scripted:long", "MEMBERINTEL_LLM_SCRIPT": str(script), **QUIET}
    with _web(environment) as (url, web):
        warm, people = _new_talk(_people(1)[0]), _people(SCRIPTED)
        # What a process loads once is no stream's.
        asyncio.run(_talk_all(url, [warm], gap=0.0, at_once=False))
        before = web.memory_info().rss
        peak, talks, _ = asyncio.run(_crowd(url, people, [], web))
        yield from _kept(
            f"{SCRIPTED} streams of {RATE} pieces a second, scripted", talks, (peak - before) / SCRIPTED
        )


def _kept(what: str, talks: Sequence[Talk], each: float) -> Iterator[Figure]:
    gaps = [gap for talk in talks for gap in _gaps(talk)]
    on_time = sum(gap <= FLUSH + GRACE for gap in gaps)
    ended = sum(talk.ended for talk in talks)
    yield at_least(f"{what}: answered to the end", ended, len(talks), "streams")
    yield at_least(f"{what}: saved on time", 100 * on_time / max(len(gaps), 1), 100, "%")
    yield at_most(f"{what}: memory of each", each / 1024, 150, "KiB")


def _gaps(talk: Talk) -> list[float]:
    """Seconds between what is saved of an answer while it is written."""
    if talk.session is None:
        return []
    with scope(talk.person.who):
        at = [event.at for event in log.load(talk.session) if event.kind == "pending_state"]
    return [(late - early).total_seconds() for early, late in pairwise(at)]


# --- who speaks ------------------------------------------------------------------------------------------


def _people(many: int) -> list[Person]:
    found = []
    for _ in range(many):
        who = customer()
        with scope(who):
            found.append(Person(who, actions.make_token(name="bench", scopes=["chat"]).secret))
    return found


async def _crowd(
    url: str, people: Sequence[Person], probing: Sequence[Person], web: psutil.Process
) -> tuple[int, list[Talk], list[Talk]]:
    """(memory when all flow, the streams, those that came when all flowed)."""
    talks = [_new_talk(person) for person in people]
    crowd = asyncio.create_task(_talk_all(url, talks, gap=4.0 / len(people), at_once=True))
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(talk.flows.wait() for talk in talks))
    probes = [_new_talk(person) for person in probing]
    await _talk_all(url, probes, gap=0.2, at_once=True, follow=False)
    most = web.memory_info().rss
    await crowd
    return most, talks, probes


def _new_talk(person: Person) -> Talk:
    return Talk(person, f"mark{uuid4().hex}")


async def _talk_all(
    url: str, talks: Sequence[Talk], *, gap: float, at_once: bool, follow: bool = True
) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as client:
        tasks = []
        for talk in talks:
            task = asyncio.create_task(_talk(client, talk, follow=follow))
            tasks.append(task)
            if not at_once:
                await task
            await asyncio.sleep(gap)
        await asyncio.gather(*tasks)


async def _talk(client: httpx.AsyncClient, talk: Talk, *, follow: bool) -> None:
    headers = {"Authorization": f"Bearer {talk.person.token}"}
    body = {"text": f"Why do members leave in their first month? {talk.mark}", "client_key": talk.mark}
    talk.sent = clock.now().timestamp()
    sent = await client.post("/api/v1/messages/", json=body, headers=headers)
    if sent.status_code != 201:
        raise RuntimeError(f"a message was answered with {sent.status_code}: {sent.text[:300]}")
    talk.session = UUID(sent.json()["session"])
    if not follow:
        return
    async with client.stream("GET", sent.json()["stream"], headers=headers) as answer:
        async for chunk in answer.aiter_raw():
            if b"event: text" in chunk:
                talk.flows.set()
            talk.ended = talk.ended or b"event: done" in chunk


# --- processes -------------------------------------------------------------------------------------------


@contextmanager
def _model() -> Iterator[str]:
    """The address of a server that speaks a provider's API."""
    port = _free_port()
    command = [sys.executable, "-m", "evals.loopback", str(port)]
    with open(os.devnull, "wb") as nothing:
        process = children.start(command, env=os.environ, output=nothing)
    try:
        url = f"http://{HOST}:{port}"
        _wait(f"{url}/loopback/calls", process)
        yield url
    finally:
        children.stop(process, ((signal.SIGTERM, 5.0),))


@contextmanager
def _web(environment: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a web process, and the process."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "memberintel.asgi:application",
        "--host",
        HOST,
        "--port",
        str(port),
    ]
    command += ["--lifespan", "on", "--log-level", "warning", "--no-access-log"]
    variables = {**os.environ, "MEMBERINTEL_PROCESS": "web", "NO_PROXY": HOST, **environment}
    process = children.start(command, env=variables)
    try:
        _wait(f"http://{HOST}:{port}/readyz", process)
        yield f"http://{HOST}:{port}", psutil.Process(process.pid)
    finally:
        children.stop(process, ((signal.SIGTERM, 40.0),))


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing answered at {url}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _play(model: str, text: list[str], *, pace: float) -> None:
    httpx.post(
        f"{model}/loopback/plays", json=[{"text": text, "pace": pace}], trust_env=False
    ).raise_for_status()


def _delays(model: str, talks: Sequence[Talk]) -> list[float]:
    """Milliseconds from each message to the first request for its answer, as they came to the model's server."""
    calls = httpx.get(f"{model}/loopback/calls", timeout=60, trust_env=False).json()
    came = [(call["at"], json.dumps(call["body"]["messages"][-1])) for call in calls]
    return [1000 * (min(at for at, body in came if talk.mark in body) - talk.sent) for talk in talks]


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
