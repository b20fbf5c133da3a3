"""The API of sites and numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.conf import LazySettings

from brain.domain.heartbeat import csv_file
from memberintel.lib import clock
from tests.api.calls import browser, problem, send
from tests.brain.heartbeat import pretend
from tests.brain.heartbeat.stage import days_of, numbers, site_of
from tests.conftest import Person

LAST = date(2026, 11, 30)


@pytest.fixture(autouse=True)
def _here(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SECURE_SSL_REDIRECT = False
    monkeypatch.setattr(clock, "source", lambda: datetime(2026, 12, 1, 9, tzinfo=UTC))


def told(response: Any, status: int = 200) -> Any:
    assert response.status_code == status, response.content
    return response.json()


def test_a_site_from_its_making_to_its_end(alice: Person, bob: Person) -> None:
    owner, colleague = browser(alice), browser(bob)
    made = told(send(owner, "POST", "/api/v1/sites/", {"name": "Kiln", "time_zone": "Europe/London"}), 201)
    site = f"/api/v1/sites/{made['id']}/"
    assert told(colleague.get(site)) == made == told(owner.get("/api/v1/sites/"))["items"][0]
    assert told(colleague.get(f"{site}heartbeat/")) == {"day": None, "text": None, "readable": True}
    assert send(colleague, "POST", f"{site}numbers/", {"csv": csv_file.SAMPLE}).status_code == 403
    brought = told(send(owner, "POST", f"{site}numbers/", {"csv": csv_file.SAMPLE}))
    assert brought == {"days": 3, "first": "2026-11-28", "last": "2026-11-30"}
    assert told(owner.get(f"{site}heartbeat/"))["text"].startswith("Through 30 November 2026")
    renamed = told(send(owner, "PUT", site, {"name": "Kin", "time_zone": "UTC"}))
    assert (renamed["name"], renamed["sources"][0]["kind"]) == ("Kin", "csv")
    assert send(owner, "DELETE", site).status_code == 204
    assert send(owner, "DELETE", site).status_code == 404


def test_numbers_day_by_day(alice: Person) -> None:
    site = site_of(alice)
    numbers(alice, site, LAST)
    path = f"/api/v1/sites/{site}/numbers/"
    client = browser(alice)
    assert len(told(client.get(path, {"source": "csv"}))["items"]) == 30
    (day,) = told(client.get(path, {"source": "csv", "first_day": "2026-11-30"}))["items"]
    assert day == {
        "day": "2026-11-30",
        "mrr": [{"currency": "USD", "amount": "1000.000"}],
        "active_members": 200,
        "trials": None,
        "paused": None,
        "unpriced": None,
        "new": 2,
        "churned": 1,
        "failed_payments": None,
        "trials_ended": None,
        "trials_converted": None,
    }
    assert told(client.get(path, {"source": "stripe"}))["items"] == []
    for wrong in (
        {},
        {"source": "paypal"},
        {"source": "csv", "first_day": "soon"},
        {"source": "csv", "first_day": "9999-12-31"},
        {"source": "csv", "last_day": "0001-01-01"},
        {"source": "csv", "first_day": "2026-11-30", "last_day": "2026-11-01"},
        {"source": "csv", "first_day": "2020-01-01", "last_day": "2026-11-01"},
    ):
        assert problem(client.get(path, wrong))["status"] == 400


def test_a_file_with_faults(alice: Person) -> None:
    site = site_of(alice)
    path = f"/api/v1/sites/{site}/numbers/"
    refused = problem(send(browser(alice), "POST", path, {"csv": "day,new\n2026-11-30,x\n2026,1\n"}))
    assert refused["status"] == 400
    assert [fault["message"].partition(":")[0] for fault in refused["errors"]] == [
        "row 2, column new",
        "row 3, column day",
    ]
    assert days_of(alice, site, "csv") == {}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"kind": "stripe", "key": "pk_live_12345678"}, ["key"]),
        ({"kind": "csv", "key": "rk_live_12345678"}, ["kind"]),
        ({"kind": "memberpress", "key": "long-enough"}, ["url", "currency"]),
        (
            {"kind": "memberpress", "key": "x", "url": "https://10.0.0.1", "currency": "??"},
            ["key", "url", "currency"],
        ),
    ],
)
def test_credentials_that_cannot_be(alice: Person, given: dict[str, str], fields: list[str]) -> None:
    site = site_of(alice)
    refused = problem(send(browser(alice), "POST", f"/api/v1/sites/{site}/sources/", given))
    assert refused["status"] == 400
    assert [fault["field"] for fault in refused["errors"]] == fields


def test_connecting_trying_and_disconnecting(alice: Person, settings: LazySettings) -> None:
    site = site_of(alice)
    client = browser(alice)
    path = f"/api/v1/sites/{site}/sources/"
    with pretend.serving(pretend.stripe) as server:
        settings.STRIPE_API_BASE = server.url
        server.lists = {"subscriptions": [], "events": []}
        refused = problem(send(client, "POST", path, {"kind": "stripe", "key": "rk_test_elsewhere"}))
        assert (refused["status"], refused["type"], refused["reason"]) == (
            409,
            "/problems/source-unreadable",
            "bad_key",
        )
        made = told(send(client, "POST", path, {"kind": "stripe", "key": server.key}), 201)
        assert server.key not in str(made)
        assert told(client.post(f"{path}{made['id']}/"))["state"] == "connected"
        server.key = "rk_test_revoked"
        assert problem(client.post(f"{path}{made['id']}/"))["status"] == 409
    assert send(client, "DELETE", f"{path}{made['id']}/").status_code == 204
    assert told(client.get(f"/api/v1/sites/{site}/"))["sources"][0]["state"] == "disconnected"
    assert client.post(f"{path}{made['id']}/").status_code == 404
