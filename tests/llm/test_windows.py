from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from memberintel.llm import windows
from memberintel.llm.backends.registry import backend
from memberintel.llm.errors import Unavailable


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    windows._told.clear()
    yield
    windows._told.clear()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int | Exception | None]:
    """What the scripted provider tells about its models, call by call; an error is raised."""
    answers: list[int | Exception | None] = []

    async def window(model: str) -> int | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(backend("scripted"), "window", window)
    return answers


def test_a_model_whose_provider_does_not_tell_is_in_the_table(settings: Settings) -> None:
    settings.LLM_ROUTES = {"chat": ("offline:extractive",)}
    assert asyncio.run(windows.window("chat")) == settings.LLM_WINDOWS["offline:extractive"]


def test_what_the_provider_tells_is_kept_for_a_while(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, told: list[int | Exception | None]
) -> None:
    settings.LLM_ROUTES = {"chat": ("scripted:w",)}
    told += [50_000, 60_000]
    assert asyncio.run(windows.window("chat")) == 50_000
    assert asyncio.run(windows.window("chat")) == 50_000
    monkeypatch.setattr(windows, "KEPT_SECONDS", 0.0)
    assert asyncio.run(windows.window("chat")) == 60_000


@pytest.mark.parametrize("answer", [None, Unavailable()])
def test_a_provider_that_cannot_tell_leaves_the_table(
    settings: Settings, told: list[int | Exception | None], answer: int | Exception | None
) -> None:
    settings.LLM_ROUTES = {"chat": ("scripted:w",)}
    told.append(answer)
    assert asyncio.run(windows.window("chat")) == settings.LLM_WINDOW_UNKNOWN


def test_the_smallest_window_of_the_chain_counts(
    settings: Settings, told: list[int | Exception | None]
) -> None:
    settings.LLM_ROUTES = {"chat": ("scripted:a", "scripted:b")}
    told += [70_000, 40_000]
    assert asyncio.run(windows.window("chat")) == 40_000


def test_no_window_is_larger_than_the_setting_says(settings: Settings) -> None:
    settings.LLM_ROUTES = {"chat": ("offline:extractive",)}
    settings.LLM_WINDOW_MOST = 9_000
    assert asyncio.run(windows.window("chat")) == 9_000
    settings.LLM_WINDOW_MOST = 10**9
    assert asyncio.run(windows.window("chat")) == settings.LLM_WINDOWS["offline:extractive"]
