"""Sessions and days go to the external memory where an owner agrees, follow changes, and are deleted there."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection, connections

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.tenancy.databases import connected_as
from tests.waiting import PATIENCE
from tests.wrapups.stage import ADVICE, job_of, run, talked
from tests.wrapups.test_journal import EVENING, OWN, lived, write
from wrapups import actions as wrapups
from wrapups import makers, queries
from wrapups.handover import actions, carrier
from wrapups.handover import memory as memory_client
from wrapups.journal import actions as journal
from wrapups.models import ExternalDeletion, HandOver, JobKind

Login = Callable[[str], AbstractContextManager[None]]


@dataclass
class Memory:
    """A server on loopback that speaks the service's API: what stands in it, and how it answers."""

    address: str = ""
    documents: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    status: int = 200
    calls: list[str] = field(default_factory=list)

    def take(self, method: str, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        self.calls.append(f"{method} {path}")
        assert key == "Bearer a-key"
        namespace = path.split("/")[2]
        if self.status == 200 and method == "POST":
            self.documents[namespace, body["id"]] = body
        elif self.status == 200 and path.endswith("/document"):
            for each in body["ids"]:
                self.documents.pop((namespace, each), None)
        elif self.status == 200:
            self.documents = {place: each for place, each in self.documents.items() if place[0] != namespace}
        return {
            "id": body.get("id", ""),
            "status": "queued",
            "success": True,
            "deletedCount": 1,
            "errors": [],
        }


@pytest.fixture
def memory(settings: LazySettings) -> Iterator[Memory]:
    held = Memory()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            told = held.take(self.command, self.path, body, self.headers["Authorization"])
            out = json.dumps(told).encode()
            self.send_response(held.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        do_POST = do_DELETE = _answer  # noqa: N815 (the names the server looks for)

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads along."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    held.address = f"http://127.0.0.1:{server.server_port}"
    settings.SUPERMEMORY_API_KEY, settings.SUPERMEMORY_BASE_URL = "a-key", held.address
    settings.SUPERMEMORY_SECONDS = PATIENCE
    settings.SECURE_SSL_REDIRECT = False
    # The sweep looks across tenants: what other tests left in the database is not this one's.
    with connected_as("owner"), connection.cursor() as cursor:
        cursor.execute("UPDATE hand_overs SET state = 'done'")
        cursor.execute("DELETE FROM external_deletions")
    yield held
    server.shutdown()
    server.server_close()


def agreed(person: Person) -> None:
    with scope(person.scope):
        actions.agree(by=person.user.id)


def carry(login: Login) -> int:
    with login("worker"):
        return run(carrier.carry())


def due_again(person: Person) -> None:
    with scope(person.scope):
        HandOver.objects.filter(state="pending").update(next_try_at=clock.now() - timedelta(seconds=1))
    ExternalDeletion.objects.all().update(next_try_at=clock.now() - timedelta(seconds=1))


def rows(person: Person) -> dict[str, str]:
    with scope(person.scope):
        return dict(HandOver.objects.values_list("document", "state"))


def written(person: Person, login: Login) -> UUID:
    """A session whose notes and journal are there."""
    session = lived(person)
    write(person, session, login)
    with login("worker"):
        run(makers.do(job_of(person.scope, session).id, person.scope))
    return session


def test_without_a_key_or_an_owners_word_nothing_is_owed(
    alice: Person, memory: Memory, login: Login, settings: LazySettings
) -> None:
    written(alice, login)
    assert rows(alice) == {}
    agreed(alice)
    settings.SUPERMEMORY_API_KEY = ""
    talked(alice.scope, OWN, ADVICE, journal=True)
    assert rows(alice) == {}
    assert carry(login) == 0
    assert memory.calls == []


def test_a_session_and_its_day_are_handed_over(alice: Person, memory: Memory, login: Login) -> None:
    agreed(alice)
    session = written(alice, login)
    assert carry(login) == 2
    names = {name for _, name in memory.documents}
    assert names == {f"session_{session}", "journal_2026-03-07"}
    assert set(rows(alice).values()) == {"done"}
    (whole,) = [each for each in memory.documents.values() if each["id"].startswith("session_")]
    (day,) = [each for each in memory.documents.values() if each["id"].startswith("journal_")]
    assert "worried all week" in whole["content"]
    assert "Note for next time" in whole["content"]
    assert ADVICE not in whole["content"]
    assert (day["date"], day["metadata"]["times"]) == ("2026-03-07", ["8:00 PM"])
    assert day["metadata"]["mood"]
    assert carry(login) == 0


def test_it_waits_until_the_notes_are_written(alice: Person, memory: Memory, login: Login) -> None:
    agreed(alice)
    session = lived(alice)
    assert carry(login) == 0
    assert memory.documents == {}
    write(alice, session, login, JobKind.WRAP_UP, JobKind.JOURNAL, JobKind.MOOD)
    due_again(alice)
    assert carry(login) == 2


def test_what_is_changed_here_follows_there(alice: Person, memory: Memory, login: Login) -> None:
    agreed(alice)
    session = written(alice, login)
    carry(login)
    with scope(alice.scope):
        journal.edit(session, "Only this.")
        found = queries.wrap_up_of(session)
        assert found is not None
        wrapups.delete(found.id, by=alice.user.id)
    assert carry(login) == 2
    assert {each["content"] for each in memory.documents.values()} == {"Only this."}
    with scope(alice.scope):
        journal.edit(session, "")
    assert carry(login) == 2
    assert memory.documents == {}
    assert rows(alice) == {}


def test_a_memory_that_is_down_is_asked_again_and_one_that_refuses_is_not(
    alice: Person, memory: Memory, login: Login
) -> None:
    agreed(alice)
    written(alice, login)
    memory.status = 503
    assert carry(login) == 0
    assert set(rows(alice).values()) == {"pending"}
    memory.status = 200
    due_again(alice)
    assert carry(login) == 2
    with scope(alice.scope):
        HandOver.objects.all().update(state="pending", next_try_at=clock.now())
    memory.status = 422
    assert carry(login) == 0
    assert set(rows(alice).values()) == {"failed"}
    with scope(alice.scope):
        assert set(HandOver.objects.values_list("last_error", flat=True)) == {"http 422"}


def test_what_was_changed_while_it_was_carried_is_carried_again(
    alice: Person, memory: Memory, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed(alice)
    session = written(alice, login)
    put = memory_client.put

    def slow(*given: Any) -> None:
        put(*given)
        with scope(alice.scope):
            actions.session_changed(session)
        connections.close_all()  # in a thread of its own

    monkeypatch.setattr(memory_client, "put", slow)
    carry(login)
    assert rows(alice)[f"session_{session}"] == "pending"


def test_a_session_that_is_erased_is_deleted_there_and_from_its_day(
    alice: Person, memory: Memory, login: Login
) -> None:
    agreed(alice)
    session = written(alice, login)
    carry(login)
    with scope(alice.scope):
        assert actions.forget_session(session) == 1
    assert carry(login) >= 2
    assert f"session_{session}" not in {name for _, name in memory.documents}


def test_an_owner_takes_it_back_and_all_is_deleted_there(
    alice: Person, bob: Person, memory: Memory, login: Login
) -> None:
    agreed(alice)
    written(alice, login)
    written(bob, login)
    assert carry(login) == 4
    client = signed_in(alice.user)
    page = client.get("/settings/external-memory/").content.decode()
    assert "2 of yours handed over" in page
    memory.status = 500
    assert client.post("/settings/external-memory/", {"agree": "no"}).status_code == 302
    carry(login)
    assert memory.documents
    memory.status = 200
    due_again(alice)
    assert carry(login) == 2
    assert memory.documents == {}
    talked(alice.scope, OWN, ADVICE, at=EVENING, journal=True)
    assert rows(alice) == {}


def test_only_an_owner_decides(alice: Person, bob: Person, memory: Memory) -> None:
    client = signed_in(bob.user)
    assert client.post("/settings/external-memory/", {"agree": "yes"}).status_code == 403
    answer = client.put("/api/v1/external-memory/", {"agreed": True}, content_type="application/json")
    assert answer.status_code == 403
    with scope(bob.scope):
        assert not actions.agreed()
    assert client.get("/api/v1/external-memory/").json()["agreed"] is False
    own = signed_in(alice.user)
    given = own.put("/api/v1/external-memory/", {"agreed": True}, content_type="application/json")
    assert given.json() == {"available": True, "agreed": True, "pending": 0, "done": 0, "failed": 0}


def test_where_there_is_none_the_page_says_so(alice: Person, settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SUPERMEMORY_API_KEY = False, ""
    client = signed_in(alice.user)
    assert "Not set up" in client.get("/settings/external-memory/").content.decode()
    answer = client.put("/api/v1/external-memory/", {"agreed": True}, content_type="application/json")
    assert answer.status_code == 409
