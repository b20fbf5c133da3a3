"""What docs/api.md shows works, against a server as it runs."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from memberintel.accounts import tokens
from memberintel.tenancy.context import scope
from sessions import queries
from sessions.api import stream_address
from sessions.domain.transcript import AnswerItem
from tests import services
from tests.api.calls import made_token
from tests.conftest import Person
from tests.sessions.conftest import say
from tests.waiting import PATIENCE, until

DOCS = (services.ROOT / "docs" / "api.md").read_text()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a web process of its own."""
    log = tmp_path / "log"
    with socket.create_server((services.HOST, 0)) as port, log.open("wb") as output:
        process = subprocess.Popen(
            services.uvicorn(port),
            cwd=services.ROOT,
            env={**os.environ, "MEMBERINTEL_EMBEDDED": "1", "DATABASE_POOL": "8"},
            stdout=output,
            stderr=output,
            pass_fds=[port.fileno()],
        )
        url = services.address_of(port)
    try:
        until(lambda: _answers(url, process), saw=log.read_text)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the server has ended"
    try:
        return httpx.get(f"{url}/healthz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def test_the_snippet_says_something_and_prints_the_answer(server: str, alice: Person, tmp_path: Path) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet)
    ran = subprocess.run(
        [sys.executable, tmp_path / "snippet.py"],
        env={"MEMBERINTEL_URL": server, "MEMBERINTEL_TOKEN": made_token(alice, "chat").secret},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("\n[complete]\n")
    with scope(alice.scope):
        session = queries.open_session()
        assert session is not None
        answers = [item for item in queries.newest_part(session).items if isinstance(item, AnswerItem)]
    assert ran.stdout.removesuffix("\n[complete]\n") == answers[0].text
    assert answers[0].text


def test_more_followers_than_connections_leave_room_for_others(server: str, alice: Person) -> None:
    """A stream holds no connection: with a pool of eight, twenty are open and requests are still answered."""
    said = say(
        alice, "Nobody will answer this for a while", "key-12345678"
    )  # the lease of its turn lives 15 s
    headers = {"Authorization": f"Bearer {made_token(alice, 'chat', 'read').secret}"}
    with (
        httpx.Client(base_url=server, headers=headers, timeout=PATIENCE) as client,
        ExitStack() as open_streams,
    ):
        address = stream_address(said.session, said.turn.id, 1, said.seq)
        for _ in range(20):
            stream = open_streams.enter_context(client.stream("GET", address))
            assert stream.status_code == 200
        assert client.get("/api/v1/sessions/").status_code == 200


def test_every_scope_is_explained() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| ", DOCS, re.MULTILINE)) == tokens.SCOPES.keys()
