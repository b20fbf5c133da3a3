"""The server is steered over HTTP too, and refuses what the real ones refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from evals.loopback.server import Server, running

HEADERS = {"anthropic-version": "2023-06-01", "authorization": "Bearer k"}
ASKED: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 100,
    "stream": True,
    "messages": [{"role": "user", "content": "hello"}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=HEADERS, trust_env=False) as client:
        client.delete("/loopback")
        yield client


def test_plays_are_set_and_calls_read_over_http(client: httpx.Client) -> None:
    plays = [{"text": ["one ", "two"]}, {"end": "error", "status": 429, "retry_after": "3"}]
    assert client.post("/loopback/plays", json=plays).json() == []
    assert "two" in client.post("/v1/messages", json=ASKED).text
    refused = client.post("/v1/messages", json=ASKED)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3")
    calls = client.get("/loopback/calls").json()
    assert [(call["api"], call["model"]) for call in calls] == [("messages", "claude-haiku-5-5")] * 2
    assert calls[0]["body"] == ASKED
    assert client.delete("/loopback").json() == []


@pytest.mark.parametrize(
    "changed",
    [
        {"temperature": 0.3},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "hello"}]},
        {"messages": [{"role": "user", "content": " "}]},
        {"system": [{"type": "text", "text": ""}]},
        {"model": "claude-fable-5-1", "thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        {
            "system": [
                {"type": "text", "text": str(number), "cache_control": {"type": "ephemeral"}}
                for number in range(5)
            ]
        },
    ],
    ids=[
        "unknown field",
        "no message",
        "advisor first",
        "blank",
        "blank system",
        "no thought",
        "budget",
        "markers",
    ],
)
def test_a_request_the_real_api_refuses_is_refused(client: httpx.Client, changed: dict[str, Any]) -> None:
    answer = client.post("/v1/messages", json={**ASKED, **changed})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_thought_that_was_changed_is_refused(client: httpx.Client) -> None:
    thought = {"type": "thinking", "thinking": "mine", "signature": "0"}
    said = [*ASKED["messages"], {"role": "assistant", "content": [thought]}, *ASKED["messages"]]
    assert client.post("/v1/messages", json={**ASKED, "messages": said}).status_code == 400


def test_left_alone_it_answers_like_the_offline_advisor(client: httpx.Client) -> None:
    answer = client.post("/v1/messages", json=ASKED)
    assert "I am here." in answer.text.replace("\\", "") or "text_delta" in answer.text
    assert "message_stop" in answer.text
