"""No list walks a whole table, however long the table: each has an index to go by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person

LONG = {
    "sessions",
    "session_events",
    "closing_jobs",
    "session_logs",
    "ledger",
    "users",
    "tenants",
    "documents",
    "charge_counters",
    "charges",
    "tenant_months",
}
LISTS = {
    "/admin/tenancy/user/": ["staff=1", "off=1", "tenant_id={tenant}"],
    "/admin/tenancy/tenant/": ["tier__key__exact=pro"],
    "/admin/chat/session/": ["open=1"],
    "/admin/wrapups/sessionlog/": ["edited=1", "shortened=1"],
    "/admin/wrapups/closingjob/": ["state=failed", "state=expired", "state=failed&made=7"],
    "/admin/usage/ledgerentry/": ["failed=1", "unpriced=1", "tenant_id={tenant}&session={other}"],
    "/admin/brain/document/": [],
    "/admin/usage/chargecounter/": ["tenant_id={tenant}"],
}
OWNED = ["tenant_id={tenant}", "tenant_id={tenant}&customer_id={customer}"]
NO_CUSTOMER = ("/admin/tenancy/", "/admin/usage/chargecounter/")
EVERY = ["", "p=7", "made=30", "q={email}", "q=alice", "q={other}"]
CASES = [
    f"{path}?{query}"
    for path, own in LISTS.items()
    for query in [*EVERY, *own, *([] if path.startswith(NO_CUSTOMER) else OWNED)]
]


@pytest.fixture(scope="module")
def desk(django_db_blocker: Any) -> Client:
    with django_db_blocker.unblock():
        return sign_in(make_staff())


@pytest.mark.parametrize("url", [*CASES, "/admin/"])
def test_a_list_has_an_index_to_go_by(desk: Client, alice: Person, url: str) -> None:
    asked = url.format(
        tenant=alice.scope.tenant_id, customer=alice.scope.customer_id, email=alice.user.email, other=uuid4()
    )
    with CaptureQueriesContext(connections["support"]) as captured:
        assert desk.get(asked).status_code == 200
    for query in captured.captured_queries:
        for node in nodes(plan_of(query["sql"])):
            walked = node["Node Type"] == "Seq Scan" and node["Relation Name"] in LONG
            assert not walked, f"{query['sql']}\nwalks {node['Relation Name']}"


@pytest.mark.parametrize("path", list(LISTS))
def test_the_newest_rows_come_without_sorting_all(desk: Client, path: str) -> None:
    with CaptureQueriesContext(connections["support"]) as captured:
        desk.get(path)
    (query,) = [query["sql"] for query in captured.captured_queries if "ORDER BY" in query["sql"]]
    kinds = {node["Node Type"] for node in nodes(plan_of(query))}
    assert "Index Scan" in kinds
    assert "Sort" not in kinds


def plan_of(sql: str) -> dict[str, Any]:
    """The plan of a statement where walking or sorting a whole table is the last resort, as it is once tables are
    long."""
    with transaction.atomic(using="support"), connections["support"].cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
        found = cursor.fetchone()[0]
        plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
        return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a plan."""
    yield plan
    for inner in plan.get("Plans", []):
        yield from nodes(inner)
