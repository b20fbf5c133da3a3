"""How many requests one customer may make, and what happens to that when Redis is away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from memberintel.accounts import limits
from tests.api.calls import bearer, browser, made_token, problem, send
from tests.conftest import Person

PROFILE = "/api/v1/profile/"


@pytest.fixture(autouse=True)
def _few(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.API_LIMITS = {"read": 3, "write": 2, "say": 1}
    monkeypatch.setattr(limits, "WINDOW_SECONDS", 100_000)  # so that no minute ends while a test counts
    yield
    limits._shared.resting_until = 0.0


def test_a_browser_and_all_tokens_of_a_customer_count_together(alice: Person, bob: Person) -> None:
    clients = [
        browser(alice),
        bearer(made_token(alice, "read").secret),
        bearer(made_token(alice, "read").secret),
    ]
    assert [client.get(PROFILE).status_code for client in clients] == [200] * 3
    for client in clients:
        response = client.get(PROFILE)
        assert response.status_code == 429
        told = problem(response)
        assert told["type"] == "/problems/too-many-requests"
        assert 0 < int(response["Retry-After"]) == told["retry_after"] <= 100_000
    assert browser(bob).get(PROFILE).status_code == 200


def test_reading_writing_and_talking_count_apart(alice: Person) -> None:
    client = browser(alice)
    for _ in range(4):
        last = client.get(PROFILE)
    assert last.status_code == 429
    statuses = [send(client, "PATCH", PROFILE, {}).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    given = {"text": " ", "client_key": "key-12345678"}
    assert [send(client, "POST", "/api/v1/messages/", given).status_code for _ in range(2)] == [400, 429]


def test_without_redis_the_process_counts_for_itself(alice: Person, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    client = browser(alice)
    began = time.monotonic()
    assert [client.get(PROFILE).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    assert limits._shared.resting_until > began


def test_a_redis_that_is_back_counts_again(
    alice: Person, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REST_SECONDS", 0.0)
    there = settings.REDIS_URL
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    client = browser(alice)
    assert client.get(PROFILE).status_code == 200
    settings.REDIS_URL = there
    assert limits._shared.count(f"rate:{alice.user.pk}:probe:0") == 1
    assert client.get(PROFILE).status_code == 200


def test_a_new_window_starts_from_nothing() -> None:
    own = limits._Own()
    assert [own.count("a", 1), own.count("a", 1), own.count("a", 2)] == [1, 2, 1]
    assert len(own.counts) == 1
