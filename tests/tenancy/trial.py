"""Many requests for several people at once, in a process of its own: who read whose rows?

    python -m tests.tenancy.trial '{"people": [[tenant, customer, rows], ...], "stamp": "ours", "ways": {...}}'

The variables decide the login, the address (direct or PgBouncer) and the pool. `stamp` is `ours`, or one of two
ways to do it wrong that must be found out: `kept` stamps as we do, but for the database session; `once` sets the
session at the start of a request and trusts it to stay. Prints what came of the requests as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from wsgiref.util import setup_testing_defaults

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.signals import request_finished
from django.core.wsgi import get_wsgi_application
from django.db import ProgrammingError, connection, connections, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from memberintel.tenancy.backend import base
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.unit import unit
from tests.waiting import until

WORKERS = 8
READ = "SELECT tenant_id::text, customer_id::text, count(*) FROM sessions GROUP BY 1, 2"
WRITE = (
    "WITH touched AS (UPDATE sessions SET turn_stop = turn_stop RETURNING tenant_id, customer_id)"
    " SELECT tenant_id::text, customer_id::text, count(*) FROM touched GROUP BY 1, 2"
)
type Enter = Callable[[Scope], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Person:
    """Somebody, and how many sessions are theirs."""

    scope: Scope
    rows: int

    def verdict(self, found: list[tuple[str, str, int]]) -> str:
        """`right`, `leaked` (rows of somebody else) or `wrong`."""
        owner = (str(self.scope.tenant_id), str(self.scope.customer_id))
        if any(tuple(row[:2]) != owner for row in found):
            return "leaked"
        return "right" if found == [(*owner, self.rows)] else "wrong"


# --- the two wrong ways ----------------------------------------------------------------------------------


@contextmanager
def once(who: Scope) -> Iterator[None]:
    """What a middleware does that sets the session and trusts it."""
    with connection.cursor() as cursor:
        role = connection.settings_dict["TENANT_ROLE"]
        cursor.execute(base.STAMP.replace("true", "false"), (role, str(who.tenant_id), str(who.customer_id)))
    yield


def choose(stamp: str) -> Enter:
    """How a request enters its scope."""
    if stamp == "kept":
        base.STAMP = base.STAMP.replace("true", "false")
    return once if stamp == "once" else scope


# --- what a request does ---------------------------------------------------------------------------------


def read(sql: str = READ) -> list[tuple[str, str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]


def look_elsewhere() -> None:
    """A second alias is opened in the middle."""
    with connections["support"].cursor() as cursor:
        cursor.execute("SELECT 1")


def in_scope(person: Person, enter: Enter, number: int) -> str:
    """A few statements for one person, alone or in a transaction: the worst of their verdicts."""
    with enter(person.scope):
        if number % 2:
            found = [read(), read(WRITE), read()]
        else:
            with transaction.atomic():
                found = [read()]
                look_elsewhere()
                found.append(read(WRITE))
    verdicts = {person.verdict(rows) for rows in found}
    return next(worst for worst in ("leaked", "wrong", "right") if worst in verdicts)


def without_scope() -> str:
    """A statement for nobody, which must be refused."""
    try:
        return "leaked" if read() else "wrong"
    except ProgrammingError as error:
        return "right" if "permission denied" in str(error) else "wrong"


@dataclass(frozen=True)
class Trial:
    """The people, and the way into a scope."""

    people: tuple[Person, ...]
    enter: Enter

    def request(self, number: int) -> str:
        """Request `number`: every fifth is for nobody, the others for the people in turn."""
        try:
            if number % 5 == 0:
                return without_scope()
            return in_scope(self.people[number % len(self.people)], self.enter, number)
        except Exception as error:
            return f"{type(error).__name__}: {error}".strip().split("\n")[0]

    async def unit_of(self, number: int) -> str:
        """The same through `unit`."""
        person = self.people[number % len(self.people)]
        try:
            verdicts = {person.verdict(await unit(person.scope, read, sql)) for sql in (READ, WRITE, READ)}
        except Exception as error:
            return f"{type(error).__name__}: {error}".strip().split("\n")[0]
        return next(worst for worst in ("leaked", "wrong", "right") if worst in verdicts)


def closing(work: Callable[[int], str]) -> Callable[[int], str]:
    """As a request ends: its connections are given back."""

    def whole(number: int) -> str:
        try:
            return work(number)
        finally:
            request_finished.send(sender=None)

    return whole


def in_threads(trial: Trial, many: int) -> list[str]:
    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(closing(trial.request), range(many)))


def in_units(trial: Trial, many: int) -> list[str]:
    """Coroutines that all live until the last has done its units, and then do one more."""

    async def all_of_them() -> list[str]:
        done = asyncio.Barrier(many)

        async def one(number: int) -> list[str]:
            first = await trial.unit_of(number)
            await done.wait()
            return [first, await trial.unit_of(number + 1)]

        return [verdict for pair in await asyncio.gather(*map(one, range(many))) for verdict in pair]

    return asyncio.run(all_of_them())


# --- requests through Django's own handlers --------------------------------------------------------------

running: Trial


def page(request: HttpRequest, number: int) -> HttpResponse:
    return HttpResponse(running.request(number))


async def async_page(request: HttpRequest, number: int) -> HttpResponse:
    return HttpResponse(await running.unit_of(number))


async def stream(request: HttpRequest, number: int) -> StreamingHttpResponse:
    async def body() -> AsyncIterator[str]:
        yield await running.unit_of(number)

    return StreamingHttpResponse(body())


urlpatterns = [path("page/<int:number>", page), path("async/<int:number>", async_page)]
urlpatterns += [path("stream/<int:number>", stream)]


def over_wsgi(trial: Trial, many: int) -> list[str]:
    application = get_wsgi_application()

    def one(number: int) -> str:
        environ = {"PATH_INFO": f"/page/{number}", "HTTP_HOST": "localhost"}
        setup_testing_defaults(environ)
        response = application(environ, lambda *head: lambda part: None)
        try:
            return b"".join(response).decode()
        finally:
            response.close()

    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(one, range(many)))


def over_asgi(trial: Trial, many: int) -> list[str]:
    application = get_asgi_application()
    kinds = ("page", "async", "stream") if trial.enter is scope else ("page",)

    async def one(number: int, gate: asyncio.Semaphore) -> str:
        sent: list[bytes] = []
        asked = iter([{"type": "http.request", "body": b""}])

        async def receive() -> Any:
            message = next(asked, None)
            return message or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        where = f"/{kinds[number % len(kinds)]}/{number}"
        head = {"type": "http", "method": "GET", "path": where, "headers": [(b"host", b"localhost")]}
        async with gate:
            await application(head | {"query_string": b"", "http_version": "1.1"}, receive, send)
        return b"".join(sent).decode()

    async def all_of_them() -> list[str]:
        gate = asyncio.Semaphore(WORKERS * 2)
        return list(await asyncio.gather(*(one(number, gate) for number in range(many))))

    return asyncio.run(all_of_them())


WAYS: Mapping[str, Callable[[Trial, int], list[str]]] = {
    "threads": in_threads,
    "units": in_units,
    "wsgi": over_wsgi,
    "asgi": over_asgi,
}


def main(order: Mapping[str, Any]) -> dict[str, Any]:
    global running
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    django.setup()
    people = tuple(Person(Scope(UUID(t), UUID(c)), rows) for t, c, rows in order["people"])
    running = Trial(people, choose(order["stamp"]))
    settings.ROOT_URLCONF, settings.MIDDLEWARE = sys.modules[__name__], []
    outcomes = {way: Counter(WAYS[way](running, many)) for way, many in order["ways"].items()}
    pool = getattr(connection, "pool", None)
    return {"outcomes": outcomes, "pool": _settled(pool) if pool else {}}


def _settled(pool: Any) -> dict[str, int]:
    """Its counts, once a connection it began to make while there was need of it is made."""
    found: dict[str, int] = until(
        lambda: stats if _all_there(stats := pool.get_stats()) else {}, saw=pool.get_stats
    )
    return found


def _all_there(stats: dict[str, int]) -> bool:
    return stats["pool_size"] == stats["pool_available"]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))  # noqa: T201
