"""What every backend must do, seen through the seam, with real ledger rows."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from uuid import uuid4

import pytest
from pydantic import BaseModel
from pytest_django.fixtures import Settings

from memberintel.llm import seam
from memberintel.llm.call import rows_written
from memberintel.llm.errors import (
    ERRORS,
    BadRequest,
    InvalidOutput,
    ModelError,
    Overloaded,
    RateLimited,
    Refused,
    TimedOut,
    Unavailable,
)
from memberintel.llm.types import Delta, Finished, Prompt, ReasoningDelta, TextDelta, ToolCall, ToolCallDelta
from memberintel.tenancy.unit import unit
from memberintel.usage.models import LedgerEntry
from tests.conftest import Person
from tests.contracts.rigs import CANARY, Behaviour, Error, Rig, chat_prompt, wrap_up_prompt


class Item(BaseModel):
    text: str
    messages: list[int]


class Notes(BaseModel):
    summary: str
    decisions: list[Item]
    open_items: list[Item]
    new_context: list[Item]
    next_session_note: str


NOTES = Notes(
    summary=f"The {CANARY} plan stays.",
    decisions=[Item(text="Keep the plan", messages=[1])],
    open_items=[],
    new_context=[],
    next_session_note="Ask about the calls.",
)
SAYS = Behaviour(text=("The ", f"{CANARY} ", "studio costs ", "$49."))


async def heard(prompt: Prompt, person: Person, until: type[Delta] | None = None) -> list[Delta]:
    """The deltas of a chat answer, stopped after the first one of the kind `until`."""
    deltas: list[Delta] = []
    async with aclosing(seam.stream("chat", prompt, scope=person.scope)) as stream:
        async for delta in stream:
            deltas.append(delta)
            if until is not None and isinstance(delta, until):
                break
    return deltas


async def ledger(person: Person) -> list[LedgerEntry]:
    await rows_written()
    return await unit(person.scope, lambda: list(LedgerEntry.objects.order_by("started_at", "attempt")))


def outcomes(rows: list[LedgerEntry]) -> list[tuple[int, str, str]]:
    return [(row.attempt, row.outcome, row.error_code) for row in rows]


# --- answers ---------------------------------------------------------------------------------------------


async def test_pieces_come_in_order_and_finished_once_and_last(rig: Rig, alice: Person) -> None:
    rig.play(SAYS)
    deltas = await heard(chat_prompt(), alice)
    assert [isinstance(delta, Finished) for delta in deltas] == [False] * (len(deltas) - 1) + [True]
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert CANARY in text
    assert "$49" in text
    finished = deltas[-1]
    assert isinstance(finished, Finished)
    assert (finished.provider, finished.stop_reason) == (rig.provider, "end")
    assert finished.model
    assert finished.usage.input_tokens > 0
    assert finished.usage.output_tokens > 0


async def test_the_row_is_there_when_finished_arrives(rig: Rig, alice: Person) -> None:
    """A reader that goes away on Finished has still paid."""
    rig.play(SAYS)
    deltas = await heard(chat_prompt(), alice, until=Finished)
    rows = await unit(alice.scope, lambda: list(LedgerEntry.objects.all()))
    assert outcomes(rows) == [(1, "complete", "")]
    assert isinstance(deltas[-1], Finished)
    assert rows[0].output_tokens == deltas[-1].usage.output_tokens


async def test_a_success_is_in_the_ledger_with_all_it_belongs_to(rig: Rig, alice: Person) -> None:
    rig.play(SAYS)
    session, turn, prompt = uuid4(), uuid4(), chat_prompt()
    done = await seam.complete("compact", prompt, scope=alice.scope, session=session, turn=turn)
    (row,) = await ledger(alice)
    assert (row.tenant_id, row.customer_id) == (alice.scope.tenant_id, alice.scope.customer_id)
    assert (row.session, row.turn, row.purpose) == (session, turn, "compact")
    assert (row.provider, row.model) == (done.provider, done.model)
    assert (row.input_tokens, row.output_tokens) == (done.usage.input_tokens, done.usage.output_tokens)
    assert (row.request_digest, row.request_bytes) == (prompt.digest(), len(prompt.wire()))
    assert not row.estimated
    assert row.duration_ms >= 0


async def test_the_same_prompt_gets_the_same_answer_streamed_or_whole(rig: Rig, alice: Person) -> None:
    rig.play(SAYS)
    deltas = await heard(chat_prompt(), alice)
    done = await seam.complete("chat", chat_prompt(), scope=alice.scope)
    assert done.text == "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert done.output is None


async def test_structured_output_is_validated(rig: Rig, alice: Person) -> None:
    rig.play(Behaviour(text=(NOTES.model_dump_json(),)))
    done = await seam.complete("wrap_up", wrap_up_prompt(), scope=alice.scope, output=Notes)
    assert done.output is not None
    assert done.output.decisions[0].messages == [1]
    assert outcomes(await ledger(alice)) == [(1, "complete", "")]


async def test_embeddings_are_one_vector_a_text(rig: Rig, alice: Person) -> None:
    if rig.embeds is None:
        with pytest.raises(BadRequest):
            await seam.embed(["a text"], scope=alice.scope)
        return
    found = await seam.embed(["first text", "second, longer text", ""], scope=alice.scope)
    assert len(found.vectors) == 3
    assert len({len(vector) for vector in found.vectors}) == 1
    (row,) = await ledger(alice)
    assert (row.purpose, row.outcome) == ("embed", "complete")


async def test_tool_calls_and_reasoning_arrive_exactly(steered: Rig, alice: Person) -> None:
    call = ToolCall("call_7", "search_memory", '{"b": 1,  "a": 1.50}')
    steered.play(Behaviour(reasoning=("hm, ", "so"), text=("Looking.",), tools=(call,)))
    deltas = await heard(chat_prompt(), alice)
    assert deltas[:2] == [ReasoningDelta("hm, "), ReasoningDelta("so")]
    (made,) = [delta.call for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert (made.id, made.name, json.loads(made.arguments)) == (
        call.id,
        call.name,
        json.loads(call.arguments),
    )
    assert list(json.loads(made.arguments)) == ["b", "a"]
    if steered.exact:
        assert made.arguments == call.arguments
    assert isinstance(deltas[-1], Finished)
    assert deltas[-1].stop_reason == "tool_calls"


# --- being stopped ---------------------------------------------------------------------------------------


async def test_a_closed_stream_is_recorded_as_cancelled(rig: Rig, alice: Person) -> None:
    rig.play(Behaviour(text=SAYS.text, end="stall"))
    await heard(chat_prompt(), alice, until=TextDelta)
    (row,) = await ledger(alice)
    assert (row.outcome, row.error_code) == ("cancelled", "")
    assert row.estimated
    assert row.input_tokens > 0
    assert row.output_tokens > 0


async def test_a_cancelled_task_closes_the_connection_and_is_recorded(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(text=("one ",), end="stall"))
    began = asyncio.Event()

    async def listen() -> None:
        async with aclosing(seam.stream("chat", chat_prompt(), scope=alice.scope)) as stream:
            async for _ in stream:
                began.set()

    task = asyncio.create_task(listen())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steered.closed() == 1
    assert outcomes(await ledger(alice)) == [(1, "cancelled", "")]


async def test_a_cancelled_completion_is_recorded(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(end="stall"))
    task = asyncio.create_task(seam.complete("title", chat_prompt(), scope=alice.scope))
    while not steered.wires():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await ledger(alice)  # of the input, what the provider had reported by then
    assert (row.outcome, row.output_tokens) == ("cancelled", 0)


# --- failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(ERRORS))
async def test_every_failure_is_a_typed_error_and_a_row(steered: Rig, alice: Person, code: str) -> None:
    steered.play(Behaviour(end=Error(code)))
    with pytest.raises(ERRORS[code]) as raised:
        await heard(chat_prompt(), alice)
    assert raised.value.code == code
    assert raised.value.message
    rows = await ledger(alice)
    tries = 3 if raised.value.retryable and code != "invalid_output" else 1
    assert outcomes(rows) == [(number, "failed", code) for number in range(1, tries + 1)]
    assert all(row.output_tokens == 0 for row in rows)
    assert steered.closed() == tries


async def test_a_failure_before_the_first_piece_is_repeated(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(end=Error("overloaded")), Behaviour(end=Error("rate_limited", 0.01)), SAYS)
    deltas = await heard(chat_prompt(), alice)
    assert isinstance(deltas[-1], Finished)
    assert outcomes(await ledger(alice)) == [
        (1, "failed", "overloaded"),
        (2, "failed", "rate_limited"),
        (3, "complete", ""),
    ]
    assert len(set(steered.wires())) == 1


async def test_a_failure_after_the_first_piece_is_not_repeated(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(text=("one ", "two "), end=Error("overloaded")), SAYS)
    deltas: list[Delta] = []

    async def listen() -> None:
        async for delta in seam.stream("chat", chat_prompt(), scope=alice.scope):
            deltas.append(delta)

    with pytest.raises(Overloaded):
        await listen()
    assert deltas == [TextDelta("one "), TextDelta("two ")]
    (row,) = await ledger(alice)
    assert (row.outcome, row.error_code, row.estimated) == ("failed", "overloaded", True)
    assert row.output_tokens > 0


async def test_a_whole_answer_that_broke_off_is_asked_for_again(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(text=("half an ans",), end=Error("unavailable")), SAYS)
    done = await seam.complete("compact", chat_prompt(), scope=alice.scope)
    assert done.text == "".join(SAYS.text)
    assert outcomes(await ledger(alice)) == [(1, "failed", "unavailable"), (2, "complete", "")]


async def test_a_stream_that_just_ends_is_an_error(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(text=("half an ans",), end="silence"))
    with pytest.raises(Unavailable) as raised:
        await heard(chat_prompt(), alice)
    assert raised.value.reason == "ended early"


@pytest.mark.parametrize(("text", "reason"), [((), "no first piece"), (("one ",), "stalled")])
async def test_a_stalled_provider_is_timed_out(
    steered: Rig, alice: Person, settings: Settings, text: tuple[str, ...], reason: str
) -> None:
    steered.play(SAYS)
    await heard(chat_prompt(), alice)  # what a first call takes to get ready is no silence
    first = await ledger(alice)
    settings.LLM_SILENCE = {"chat": steered.silence}
    settings.LLM_PATIENCE = {**settings.LLM_PATIENCE, "tries": 1}
    steered.play(Behaviour(text=text, end="stall"))
    with pytest.raises(TimedOut) as raised:
        await heard(chat_prompt(), alice)
    assert raised.value.reason == reason
    assert steered.closed() == 1
    (row,) = (await ledger(alice))[len(first) :]
    assert (row.outcome, row.error_code, row.error_reason) == ("failed", "timed_out", reason)


async def test_the_deadline_of_the_purpose_covers_all_repeats(
    steered: Rig, alice: Person, settings: Settings
) -> None:
    settings.LLM_DEADLINES = {**settings.LLM_DEADLINES, "title": 2 * steered.silence}
    steered.play(Behaviour(end="stall"))
    with pytest.raises(TimedOut) as raised:
        await seam.complete("title", chat_prompt(), scope=alice.scope)
    assert raised.value.reason == "no end"
    assert outcomes(await ledger(alice)) == [(1, "failed", "timed_out")]


async def test_a_long_wait_asked_for_is_passed_on(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(end=Error("rate_limited", 30.0)))
    with pytest.raises(RateLimited) as raised:
        await heard(chat_prompt(), alice)
    assert raised.value.retry_after == 30.0
    assert len(steered.wires()) == 1


async def test_a_refusal_is_not_repeated(steered: Rig, alice: Person) -> None:
    steered.play(Behaviour(text=("I ",), end=Error("refused")), SAYS)
    with pytest.raises(Refused):
        await seam.complete("compact", chat_prompt(), scope=alice.scope)
    assert outcomes(await ledger(alice)) == [(1, "failed", "refused")]


# --- structured output -----------------------------------------------------------------------------------


async def test_one_repair_carries_what_was_wrong_back(steered: Rig, alice: Person) -> None:
    wrong = NOTES.model_dump() | {"decisions": "none"}
    steered.play(Behaviour(text=(json.dumps(wrong),)), Behaviour(text=(NOTES.model_dump_json(),)))
    done = await seam.complete("wrap_up", wrap_up_prompt(), scope=alice.scope, output=Notes)
    assert done.output == NOTES
    first, second = steered.wires()
    assert second.startswith(first)
    assert b"decisions" in second.removeprefix(first)
    assert outcomes(await ledger(alice)) == [(1, "invalid", "invalid_output"), (2, "complete", "")]


@pytest.mark.parametrize("answer", ["", "Sorry, no JSON today.", "{", '{"summary": "only"}'])
async def test_an_answer_still_wrong_after_the_repair_is_an_error(
    steered: Rig, alice: Person, answer: str
) -> None:
    steered.play(Behaviour(text=(answer,) if answer else ()))
    with pytest.raises(InvalidOutput):
        await seam.complete("wrap_up", wrap_up_prompt(), scope=alice.scope, output=Notes)
    rows = await ledger(alice)
    assert outcomes(rows) == [(1, "invalid", "invalid_output"), (2, "invalid", "invalid_output")]
    assert all(not row.estimated for row in rows)


# --- silence about content -------------------------------------------------------------------------------


async def test_no_text_reaches_logs_or_ledger(
    rig: Rig, alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rig.play(SAYS)
    await heard(chat_prompt(), alice)
    await heard(chat_prompt(), alice, until=TextDelta)
    rows = await ledger(alice)
    assert len(rows) == 2
    assert any(record.name == "memberintel.llm.call" for record in caplog.records)
    assert CANARY not in caplog.text
    assert all(CANARY not in repr(vars(row)) for row in rows)


async def test_no_text_reaches_logs_ledger_or_errors_on_failure(
    steered: Rig, alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    errors: list[ModelError] = []
    for behaviour in (
        Behaviour(text=(CANARY,), end=Error("bad_request")),
        Behaviour(text=(CANARY,), end="silence"),
        Behaviour(text=(f'{{"{CANARY}": 1}}',)),
    ):
        steered.play(behaviour)
        with pytest.raises(ModelError) as raised:
            await seam.complete("wrap_up", wrap_up_prompt(), scope=alice.scope, output=Notes)
        errors.append(raised.value)
    assert CANARY not in caplog.text
    assert all(CANARY not in f"{error!r} {error} {error.message} {error.reason}" for error in errors)
    assert all(CANARY not in repr(vars(row)) for row in await ledger(alice))
