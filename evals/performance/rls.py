"""What row-level security adds to a statement and to a list page, beside the same rows in a table without it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evals.performance.results import Figure, alternate, at_most, plain
from memberintel.accounts.access import scope_of
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from sessions.models import Session
from sessions.queries import PAGE

SESSIONS = 10_000
ROUNDS = 400
TWIN = "bench_unprotected"

# The same rows under the same indexes, where the login may read without a scope. No policy, no keys, no triggers.
MAKE_TWIN = f"""
CREATE TABLE {TWIN} (LIKE sessions INCLUDING ALL);
INSERT INTO {TWIN} SELECT * FROM sessions;
GRANT SELECT ON {TWIN} TO app_common;
ANALYZE {TWIN};
"""  # noqa: S608  (a constant)
FILL = """
INSERT INTO sessions (id, tenant_id, customer_id, started_at, ended_at, last_activity_at, closed_at, close_reason,
                      last_seq, off_record, imported, user_messages, substantive, turn_attempt, turn_owner, turn_stop)
SELECT gen_random_uuid(), %(tenant)s, %(customer)s, now(), now(), now() - n * interval '1 minute', now(), 'idle',
       9, false, false, 4, true, 0, '', false
FROM generate_series(1, %(many)s) AS n
"""


def figures() -> Iterator[Figure]:
    """Added to a statement inside a transaction, to one alone with its stamp, and to a list page."""
    user, strangers = _customer(), [_customer() for _ in range(4)]
    who = scope_of(user)
    with _twin([user, *strangers]):
        one = _first_id(who)
        free, alone = alternate(_lookup(TWIN, one), _in_scope(who, _lookup("sessions", one)), ROUNDS)
        with scope(who), transaction.atomic():
            bare, bound = alternate(_lookup(TWIN, one), _lookup("sessions", one), ROUNDS)
            bare_list, bound_list = alternate(_list(who, TWIN), _list(who, "sessions"), ROUNDS)
        page, statements = _page(user)
    yield plain("a lookup by key without row-level security", bare, "ms")
    yield at_most("row-level security, added to a lookup in a transaction", bound - bare, 0.3, "ms")
    yield at_most("row-level security, added to a list of 10,000 rows", bound_list - bare_list, 0.3, "ms")
    yield at_most("row-level security, added to a lone statement, stamp included", alone - free, 0.3, "ms")
    yield plain(f"a list page at 10,000 sessions ({statements} statements in scope)", page, "ms")
    added = (alone - free) * statements + max(0.0, bound_list - bare_list)
    yield at_most("row-level security, share of that page", 100 * added / page, 10, "%")


def _customer() -> User:
    tenant = Tenant.objects.create(name="bench", tier_id="pro")
    return User.objects.create_user(f"bench-{uuid4().hex[:8]}@example.com", tenant=tenant)


@contextmanager
def _twin(customers: list[User]) -> Iterator[None]:
    """Sessions for everybody, and the twin for as long as it is needed."""
    with psycopg.connect(os.environ["DATABASE_URL_OWNER"], autocommit=True) as owner:
        for user in customers:
            owner.execute(FILL, {"tenant": user.tenant_id, "customer": user.id, "many": SESSIONS})
        owner.execute("ANALYZE sessions")
        owner.execute(f"DROP TABLE IF EXISTS {TWIN}".encode())
        owner.execute(MAKE_TWIN.encode())
        try:
            yield
        finally:
            owner.execute(f"DROP TABLE {TWIN}".encode())


def _first_id(who: Scope) -> UUID:
    with scope(who):
        return Session.objects.values_list("id", flat=True)[0]


def _lookup(table: str, key: UUID) -> Callable[[], object]:
    sql = f"SELECT id, closed_at, last_seq FROM {table} WHERE id = %s"  # noqa: S608  (one of two constants)
    return lambda: _fetch(sql, [key])


def _list(who: Scope, table: str) -> Callable[[], object]:
    """The statement of the sessions page as the ORM writes it, on either table."""
    with scope(who):
        rows = Session.objects.filter(archived_at=None).order_by("-last_activity_at", "-id")[: PAGE + 1]
        sql, parameters = rows.query.sql_with_params()
    sql = sql.replace('"sessions"', f'"{table}"')
    return lambda: _fetch(sql, list(parameters))


def _fetch(sql: str, parameters: list[Any]) -> object:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def _in_scope(who: Scope, work: Callable[[], object]) -> Callable[[], object]:
    def scoped() -> object:
        with scope(who):
            return work()

    return scoped


def _page(user: User) -> tuple[float, int]:
    """Median milliseconds of the sessions page, and how many of its statements run in a scope, each on its own."""
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    address = reverse("sessions")

    def ask() -> None:
        answer = client.get(address, secure=True)
        if answer.status_code != 200:
            raise RuntimeError(f"the sessions page answered {answer.status_code}")

    ask()
    with CaptureQueriesContext(connection) as asked:
        ask()
    scoped = sum(query["sql"] == "BEGIN" for query in asked)
    taken, _ = alternate(ask, lambda: None, 40)
    return taken, scoped
