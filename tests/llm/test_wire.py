"""What the backends reached over HTTP share, without a server."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from email.utils import format_datetime

import pytest

from memberintel.lib import clock
from memberintel.llm.backends import wire
from memberintel.llm.backends.anthropic import asking as anthropic
from memberintel.llm.backends.base import Request
from memberintel.llm.backends.gemini import asking as gemini
from memberintel.llm.backends.gemini import backend as gemini_backend
from memberintel.llm.backends.registry import backend
from memberintel.llm.errors import Unavailable
from memberintel.llm.types import Message, Prompt

PROMPT = Prompt(("s",), (Message("user", "hello"),))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e12"}, None),
    ],
)
def test_the_wait_a_provider_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert wire.retry_after(headers) == seconds


def test_the_wait_may_be_a_date() -> None:
    at = format_datetime(clock.now() + timedelta(seconds=60), usegmt=True)
    assert wire.retry_after({"retry-after": at}) == pytest.approx(60, abs=30)


@pytest.mark.parametrize(
    ("model", "reasoning", "thinking", "room"),
    [
        ("claude-fable-5-1", True, {"type": "adaptive", "display": "summarized"}, True),
        ("claude-fable-5-1", False, None, True),
        ("claude-opus-5-5", False, None, True),
        ("claude-haiku-5-5", True, {"type": "adaptive", "display": "summarized"}, True),
        ("claude-haiku-5-5", False, {"type": "disabled"}, False),
        ("claude-haiku-4-5", False, None, False),
        ("a-local-model", True, None, False),
    ],
)
def test_how_an_anthropic_model_is_told_to_think(
    model: str, reasoning: bool, thinking: dict[str, str] | None, room: bool
) -> None:
    body = anthropic.body(Request("chat", model, PROMPT, max_output_tokens=100, reasoning=reasoning))
    assert body.get("thinking") == thinking
    assert body["max_tokens"] == 100 + (anthropic.REASONING_TOKENS if room else 0)


def test_an_older_model_thinks_within_a_budget() -> None:
    body = anthropic.body(Request("chat", "claude-haiku-4-5", PROMPT, max_output_tokens=100, reasoning=True))
    assert body["thinking"]["budget_tokens"] < body["max_tokens"]


@pytest.mark.parametrize(
    ("model", "reasoning", "room"),
    [("gemini-2.5-flash", False, False), ("gemini-2.5-flash", True, True), ("gemini-3.8-flash", False, True)],
)
def test_how_a_gemini_model_is_told_to_think(model: str, reasoning: bool, room: bool) -> None:
    config = gemini.config(Request("title", model, PROMPT, max_output_tokens=64, reasoning=reasoning))
    assert config.max_output_tokens == 64 + (gemini.REASONING_TOKENS if room else 0)
    assert config.thinking_config is not None
    assert bool(config.thinking_config.include_thoughts) == reasoning


def test_vertex_without_credentials_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    monkeypatch.delenv("GEMINI_ACCESS_TOKEN", raising=False)
    with pytest.raises(Unavailable) as raised:
        asyncio.run(backend("gemini").window("m"))
    assert (raised.value.reason, raised.value.retryable) == ("credentials", False)
    assert "GOOGLE_APPLICATION_CREDENTIALS" in raised.value.message


def test_no_repr_shows_a_key() -> None:
    assert "SECRET" not in repr(gemini_backend.Access("p", "l", "SECRET", ""))
