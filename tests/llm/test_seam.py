"""What the seam adds to a backend: chains, options, and what must never be lost or let out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from memberintel.llm import seam
from memberintel.llm.backends import scripted
from memberintel.llm.backends.base import RawDelta, Request
from memberintel.llm.backends.registry import backend
from memberintel.llm.call import rows_written
from memberintel.llm.errors import Overloaded, Refused, Unavailable
from memberintel.llm.types import Finished, Message, Prompt, TextDelta, Usage
from memberintel.tenancy.context import SYSTEM, Scope
from memberintel.tenancy.unit import unit
from memberintel.usage.models import LedgerEntry
from tests.conftest import Person

PROMPT = Prompt(("s",), (Message("user", "hello"),))


@pytest.fixture(autouse=True)
def routed(settings: Settings) -> None:
    """Chat has a second model to fall back to; nothing waits."""
    chain = ("scripted:first", "scripted:second")
    settings.LLM_ROUTES = dict.fromkeys(settings.PURPOSES, chain)
    settings.LLM_PATIENCE = {"tries": 2, "first_wait": 0.0, "longest_wait": 1.0}


def plays(first: list[dict[str, Any]], second: list[dict[str, Any]] | None = None) -> None:
    scripted.script("first", [{"steps": [step]} for step in first])
    scripted.script("second", [{"steps": [step]} for step in second or [{"text": "second"}]])


async def heard(person: Person) -> list[TextDelta]:
    """The pieces of a chat answer."""
    async with aclosing(seam.stream("chat", PROMPT, scope=person.scope)) as stream:
        return [delta async for delta in stream if isinstance(delta, TextDelta)]


async def ledger(scope: Scope) -> list[tuple[str, int, str, str]]:
    await rows_written()
    rows = await unit(scope, lambda: list(LedgerEntry.objects.order_by("started_at", "attempt")))
    return [(row.model, row.attempt, row.outcome, row.error_code) for row in rows]


async def test_the_next_model_answers_when_the_first_does_not(alice: Person) -> None:
    plays([{"error": "overloaded"}])
    done = await seam.complete("chat", PROMPT, scope=alice.scope)
    assert (done.text, done.model) == ("second", "second")
    assert await ledger(alice.scope) == [
        ("first", 1, "failed", "overloaded"),
        ("first", 2, "failed", "overloaded"),
        ("second", 3, "complete", ""),
    ]


async def test_a_stream_falls_back_before_its_first_piece(alice: Person) -> None:
    plays([{"error": "bad_request"}])
    assert await heard(alice) == [TextDelta("second")]


async def test_half_an_emoji_does_not_break_what_is_made_of_the_answer(alice: Person) -> None:
    scripted.script(
        "first", [{"steps": [{"text": "Well\ud83d"}, {"reasoning": "\udc4d"}, {"text": "\udc4d done"}]}]
    )
    assert "".join(piece.text for piece in await heard(alice)) == "Well\ufffd\ufffd done"
    done = await seam.complete("chat", PROMPT, scope=alice.scope)
    assert done.text.encode()


async def test_a_refusal_does_not_shop_around(alice: Person) -> None:
    plays([{"error": "refused"}])
    with pytest.raises(Refused):
        await seam.complete("chat", PROMPT, scope=alice.scope)
    assert scripted.wires("second") == []


async def test_when_all_fail_the_last_error_is_raised(alice: Person) -> None:
    plays([{"error": "unavailable"}], [{"error": "overloaded"}])
    with pytest.raises(Overloaded):
        await seam.complete("chat", PROMPT, scope=alice.scope)
    assert len(await ledger(alice.scope)) == 4


async def test_the_options_of_the_purpose_reach_the_backend(
    alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LLM_OPTIONS = {"journal": {"temperature": 0.3, "max_output_tokens": 400}}
    asked: list[Request] = []

    async def stream(request: Request) -> AsyncGenerator[RawDelta]:
        asked.append(request)
        yield Finished("end", Usage(), request.model, "scripted")

    monkeypatch.setattr(backend("scripted"), "stream", stream)
    await seam.complete("journal", PROMPT, scope=alice.scope)
    await seam.complete("title", PROMPT, scope=alice.scope)
    assert [(each.purpose, each.temperature, each.max_output_tokens) for each in asked] == [
        ("journal", 0.3, 400),
        ("title", None, None),
    ]


async def test_a_foreign_exception_does_not_get_out(
    alice: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def stream(request: Request) -> AsyncGenerator[RawDelta]:
        if request.prompt:
            raise ValueError("the key sk-SECRET and the prompt")
        yield TextDelta("never")

    monkeypatch.setattr(backend("scripted"), "stream", stream)
    with pytest.raises(Unavailable) as raised:
        await seam.complete("title", PROMPT, scope=alice.scope)
    assert raised.value.reason == "unexpected"
    assert "ValueError" in caplog.text
    assert "SECRET" not in caplog.text


async def test_what_comes_after_finished_is_not_read(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stream(request: Request) -> AsyncGenerator[RawDelta]:
        yield Finished("end", Usage(), request.model, "scripted")
        yield TextDelta("late")

    monkeypatch.setattr(backend("scripted"), "stream", stream)
    assert await heard(alice) == []
    assert len(await ledger(alice.scope)) == 1


async def test_a_ledger_that_cannot_be_written_does_not_cost_the_answer(
    alice: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(record: object) -> None:
        raise OSError("database gone")

    monkeypatch.setattr("memberintel.usage.actions.record_call", fail)
    plays([{"text": "answer"}])
    assert (await seam.complete("chat", PROMPT, scope=alice.scope)).text == "answer"
    assert logging.ERROR in {record.levelno for record in caplog.records}


async def test_a_row_is_written_although_the_caller_is_cancelled_twice(alice: Person) -> None:
    plays([{"stall": True}])
    task = asyncio.create_task(seam.complete("chat", PROMPT, scope=alice.scope))
    while not scripted.wires("first"):
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ledger(alice.scope) == [("first", 1, "cancelled", "")]


async def test_usage_told_before_a_break_is_kept(alice: Person) -> None:
    scripted.script(
        "first",
        [{"steps": [{"usage": [100, 1, 900, 50]}, {"text": "a few words came"}, {"error": "unavailable"}]}],
    )
    with pytest.raises(Unavailable):
        await heard(alice)
    await rows_written()
    (row,) = await unit(alice.scope, lambda: list(LedgerEntry.objects.all()))
    assert (row.input_tokens, row.cached_tokens, row.cache_write_tokens) == (100, 900, 50)
    assert row.output_tokens == 4
    assert row.estimated


async def test_an_unknown_price_is_empty_and_an_offline_call_costs_nothing(
    alice: Person, settings: Settings
) -> None:
    plays([{"text": "x"}])
    await seam.complete("chat", PROMPT, scope=alice.scope)
    settings.LLM_ROUTES = {"title": ("offline:extractive",)}
    await seam.complete("title", PROMPT, scope=alice.scope)
    rows = await unit(alice.scope, lambda: list(LedgerEntry.objects.order_by("started_at", "attempt")))
    assert [row.cost_micros for row in rows] == [None, 0]


async def test_a_call_without_a_customer_is_the_tenant_s_own() -> None:
    before = len(await ledger(SYSTEM))
    plays([{"text": "x"}])
    await seam.complete("judge", PROMPT, scope=SYSTEM)
    assert len(await ledger(SYSTEM)) == before + 1


async def test_many_streams_at_once_each_get_their_own_answer_and_row(alice: Person) -> None:
    scripted.script("first", [{"steps": [{"words": "one two three four", "delay": 0.002}]}])

    answers = await asyncio.gather(*(heard(alice) for _ in range(50)))
    assert {"".join(piece.text for piece in answer) for answer in answers} == {"one two three four"}
    assert len(await ledger(alice.scope)) == 50
