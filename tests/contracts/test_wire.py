"""What the backends reached over HTTP must do with all that can go wrong on the way, through the real SDKs."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from contextlib import aclosing
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import BaseModel
from pytest_django.fixtures import Settings

from evals.loopback.scenario import Play
from memberintel.llm import seam, windows
from memberintel.llm.backends.base import Request
from memberintel.llm.backends.registry import backend
from memberintel.llm.errors import (
    BadRequest,
    InvalidOutput,
    ModelError,
    Overloaded,
    RateLimited,
    Refused,
    TimedOut,
    Unavailable,
)
from memberintel.llm.types import (
    Delta,
    Finished,
    Message,
    Prompt,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    Tool,
    ToolCallDelta,
    ToolResult,
)
from memberintel.tenancy.unit import unit
from memberintel.usage.models import LedgerEntry
from tests.conftest import Person
from tests.contracts.rigs import CANARY, AnthropicRig, VertexRig, WireRig, chat_prompt
from tests.contracts.test_backends import heard, ledger, outcomes
from tests.waiting import PATIENCE

HALF = ("half ", "an ans")


class Shape(BaseModel):
    summary: str


def once(settings: Settings) -> None:
    """Nothing is repeated."""
    settings.LLM_PATIENCE = {**settings.LLM_PATIENCE, "tries": 1}


async def failed(rig: WireRig, person: Person, *plays: Play) -> tuple[ModelError, list[Delta]]:
    """The error a chat answer ends in, and what came before it."""
    rig.scenario.play(plays)
    deltas: list[Delta] = []

    async def listen() -> None:
        async with aclosing(seam.stream("chat", chat_prompt(), scope=person.scope)) as stream:
            async for delta in stream:
                deltas.append(delta)

    with pytest.raises(ModelError) as raised:
        await listen()
    return raised.value, deltas


# --- what can go wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, BadRequest, False),
        (402, Unavailable, False),
        (403, Unavailable, False),
        (408, TimedOut, True),
        (413, BadRequest, False),
        (422, BadRequest, False),
        (429, RateLimited, True),
        (500, Unavailable, True),
        (502, Unavailable, True),
        (503, Overloaded, True),
        (504, TimedOut, True),
        (529, Overloaded, True),
    ],
)
async def test_a_status_has_one_meaning(
    wired: WireRig, alice: Person, settings: Settings, status: int, kind: type[ModelError], retryable: bool
) -> None:
    once(settings)
    error, deltas = await failed(wired, alice, Play(end="error", status=status))
    assert (type(error), error.retryable, deltas) == (kind, retryable, [])
    (row,) = await ledger(alice)
    assert (row.outcome, row.error_code, row.provider) == ("failed", error.code, wired.provider)
    assert (row.input_tokens, row.output_tokens, row.cost_micros) == (0, 0, 0)
    assert wired.closed() == 1


@pytest.mark.parametrize("asked", ["7", None, "soon", "-1"])
async def test_a_wait_that_is_asked_for_is_handed_on(
    wired: WireRig, alice: Person, settings: Settings, asked: str | None
) -> None:
    once(settings)
    error, _ = await failed(wired, alice, Play(end="error", status=429, retry_after=asked))
    assert error.retry_after == (7.0 if asked == "7" else None)


async def test_the_sdk_itself_repeats_nothing(wired: WireRig, alice: Person, settings: Settings) -> None:
    once(settings)
    await failed(wired, alice, Play(end="error", status=500), Play())
    assert len(wired.scenario.calls()) == 1


async def test_a_connection_that_breaks_off(wired: WireRig, alice: Person) -> None:
    error, deltas = await failed(wired, alice, Play(text=HALF, end="drop"))
    assert (type(error), error.reason) == (Unavailable, "connection")
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == list(HALF)
    (row,) = await ledger(alice)
    assert (row.outcome, row.estimated) == ("failed", True)
    assert row.input_tokens > 0
    assert row.output_tokens > 0


async def test_an_error_after_the_answer_has_begun(wired: WireRig, alice: Person) -> None:
    for status, kind in ((529 if wired.provider == "anthropic" else 503, Overloaded), (429, RateLimited)):
        error, deltas = await failed(wired, alice, Play(text=HALF, end="error", status=status))
        assert type(error) is kind
        assert len(deltas) == len(HALF)


async def test_a_stream_that_ends_without_a_reason(wired: WireRig, alice: Person) -> None:
    error, _ = await failed(wired, alice, Play(text=HALF, end="silence"))
    assert (type(error), error.reason) == (Unavailable, "ended early")


async def test_a_piece_that_cannot_be_read(wired: WireRig, alice: Person) -> None:
    error, _ = await failed(wired, alice, Play(text=HALF, end="corrupt"))
    assert (type(error), error.reason) == (Unavailable, "corrupt answer")


async def test_a_slow_first_piece_is_waited_for_within_the_deadline(
    wired: WireRig, alice: Person, settings: Settings
) -> None:
    once(settings)
    settings.LLM_SILENCE = {"chat": PATIENCE}
    wired.scenario.play([Play(text=HALF, first_after=0.3)])
    assert isinstance((await heard(chat_prompt(), alice))[-1], Finished)
    settings.LLM_SILENCE = {"chat": 0.1}
    error, _ = await failed(wired, alice, Play(text=HALF, first_after=30))
    assert (type(error), error.reason) == (TimedOut, "no first piece")
    assert wired.closed() == 1


@pytest.mark.parametrize("text", [(), ("I ",)])
async def test_a_refusal(wired: WireRig, alice: Person, text: tuple[str, ...]) -> None:
    error, _ = await failed(wired, alice, Play(text=text, end="refusal"))
    assert type(error) is Refused
    (row,) = await ledger(alice)
    assert (row.outcome, row.error_code) == ("failed", "refused")
    assert row.input_tokens > 0


async def test_a_prompt_that_is_blocked(wired: WireRig, alice: Person) -> None:
    error, _ = await failed(wired, alice, Play(end="blocked"))
    assert type(error) is Refused


async def test_a_key_that_is_not_accepted(
    wired: WireRig, alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in wired.variables().items():
        if value == "loopback" and name != "GOOGLE_CLOUD_PROJECT":
            monkeypatch.setenv(name, "wrong-SECRET")
    error, _ = await failed(wired, alice, Play())
    assert (type(error), error.retryable) == (Unavailable, False)
    assert "SECRET" not in f"{error!r} {error.message} {error.reason}"
    assert len(await ledger(alice)) == 1


async def test_a_model_that_does_not_exist_leads_on_to_the_next(
    wired: WireRig, alice: Person, settings: Settings
) -> None:
    settings.LLM_ROUTES = {"chat": (f"{wired.provider}:no-such-model", wired.route)}
    assert isinstance((await heard(chat_prompt(), alice))[-1], Finished)
    assert outcomes(await ledger(alice)) == [(1, "failed", "bad_request"), (2, "complete", "")]


async def test_a_server_that_is_not_there(
    wired: WireRig, alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(settings)
    for name in ("ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    error, _ = await failed(wired, alice, Play())
    assert (type(error), error.reason) == (Unavailable, "connection")


async def test_invalid_json_is_asked_for_again_once(wired: WireRig, alice: Person) -> None:
    wired.scenario.play([Play(text=('{"summ',)), Play(text=('{"summary": "good"}',))])
    done = await seam.complete("wrap_up", chat_prompt(), scope=alice.scope, output=Shape)
    assert done.output == Shape(summary="good")
    wired.scenario.play([Play(text=("no",))])
    with pytest.raises(InvalidOutput):
        await seam.complete("wrap_up", chat_prompt(), scope=alice.scope, output=Shape)


async def test_an_answer_that_is_cut_at_its_limit_says_so(wired: WireRig, alice: Person) -> None:
    wired.scenario.play([Play(text=HALF, end="max_tokens")])
    finished = (await heard(chat_prompt(), alice))[-1]
    assert isinstance(finished, Finished)
    assert finished.stop_reason == "max_tokens"


async def test_no_key_is_no_call(wired: WireRig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in wired.variables():
        monkeypatch.delenv(name)
    with pytest.raises(Unavailable) as raised:
        await backend(wired.provider).window("any")
    assert (raised.value.reason, raised.value.retryable) == ("no key", False)


async def test_neither_key_nor_text_is_logged(
    wired: WireRig, alice: Person, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    once(settings)
    caplog.set_level(logging.DEBUG)
    await seam.complete("chat", chat_prompt(), scope=alice.scope)
    for play in (Play(text=(CANARY,), end="corrupt"), Play(text=(CANARY,), end="drop"), Play(end="error")):
        wired.scenario.play([play])
        with pytest.raises(ModelError) as raised:
            await seam.complete("chat", chat_prompt(), scope=alice.scope)
        assert raised.value.__suppress_context__
    assert caplog.records
    assert CANARY not in caplog.text
    assert "Bearer" not in caplog.text


async def test_connections_are_used_again(
    wired: WireRig, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening one takes longer than many an answer's first piece."""
    monkeypatch.setattr("memberintel.llm.backends.anthropic.backend.LAST_BYTES_SECONDS", PATIENCE)
    for _ in range(3):
        await seam.complete("chat", chat_prompt(), scope=alice.scope)
    assert len({call.port for call in wired.scenario.calls()}) == 1


# --- what is asked ---------------------------------------------------------------------------------------


async def test_windows_come_from_the_provider_or_the_table(wired: WireRig) -> None:
    told = await backend(wired.provider).window(wired.route.partition(":")[2])
    assert told == (
        None if isinstance(wired, VertexRig) else {"anthropic": 1_000_000}.get(wired.provider, 1_048_576)
    )
    assert await windows.window("chat") >= 1_000_000


async def test_structured_output_is_asked_of_the_provider_itself(wired: WireRig, alice: Person) -> None:
    wired.scenario.play([Play(text=('{"summary": "good"}',))])
    await seam.complete("wrap_up", chat_prompt(), scope=alice.scope, output=Shape)
    (call,) = wired.scenario.calls()
    body = json.loads(call.body)
    if call.api == "messages":
        schema = body["output_config"]["format"]["schema"]
    else:
        assert body["generationConfig"]["responseMimeType"] == "application/json"
        schema = body["generationConfig"]["responseJsonSchema"]
    assert schema["properties"]["summary"]["type"] == "string"


async def test_where_a_project_is_set_vertex_is_asked(
    wired: WireRig, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that mean something to the SDK change nothing."""
    monkeypatch.setenv("GOOGLE_API_KEY", "wrong")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "false" if isinstance(wired, VertexRig) else "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "wrong")
    await seam.complete("chat", chat_prompt(), scope=alice.scope)
    (call,) = wired.scenario.calls()
    assert call.api == {"anthropic": "messages", "gemini-vertex": "vertex", "gemini-key": "key"}[wired.name]


async def test_a_turn_with_tools_goes_on_with_what_the_provider_wants_back(wired: WireRig) -> None:
    """Thoughts and calls go back signed, and only to the model they came from."""
    model = wired.route.partition(":")[2]
    wired.scenario.play(
        [
            Play(reasoning=("I should ", "look."), text=("Wait. ",), tools=(("c1", "search", '{"q": 1}'),)),
            Play(),
        ]
    )
    tool = Tool("search", "Searches", '{"type": "object", "properties": {"q": {"type": "integer"}}}')
    prompt = Prompt(("s",), (Message("user", "hello"),), (tool,))
    deltas = [
        each async for each in backend(wired.provider).stream(Request("chat", model, prompt, reasoning=True))
    ]
    thought = "".join(each.text for each in deltas if isinstance(each, ReasoningDelta))
    signed = [each.signature for each in deltas if isinstance(each, ReasoningDelta) and each.signature]
    (call,) = [each.call for each in deltas if isinstance(each, ToolCallDelta)]
    assert thought == "I should look."
    reasoning = (Reasoning(thought, signed[0]),) if signed else ()
    answer = Message("assistant", "Wait. ", (call,), (), reasoning)
    result = Message("user", "", results=(ToolResult(call.id, "nothing", error=True),))
    onward = prompt.followed_by(answer, result)
    for other in (model, f"{model}-other"):
        request = Request("chat", other, onward, reasoning=True)
        rest = [each async for each in backend(wired.provider).stream(request)]
        assert isinstance(rest[-1], Finished)
    plain_base64 = str.maketrans("-_", "+/")
    first, second, third = (each.body.decode().translate(plain_base64) for each in wired.scenario.calls())
    proof = (signed[0] if signed else call.signature).split(" ")[-1].translate(plain_base64)
    assert (proof in second, proof in third) == (True, False)
    if isinstance(wired, AnthropicRig):
        assert '"thinking":"I should look."' in second
    assert proof not in first
    assert wired.wires()[1].startswith(wired.wires()[0])


async def test_the_cache_is_used_and_counted(wired: WireRig, alice: Person) -> None:
    long = "\n".join(f"Fact {number}: the {CANARY} studio opened in {number}." for number in range(200))
    prompt = Prompt(("You are an advisor.", long), (Message("user", "first question"),))
    answer = await seam.complete("chat", prompt, scope=alice.scope, turn=uuid4())
    onward = prompt.followed_by(Message("assistant", answer.text), Message("user", "and then?"))
    await seam.complete("chat", onward, scope=alice.scope, turn=uuid4())
    first, second = await ledger(alice)
    assert first.cached_tokens == 0
    assert second.cached_tokens > 0.95 * first.input_tokens + first.cache_write_tokens - 100
    assert (first.cache_write_tokens > 0) == (wired.provider == "anthropic")
    assert first.cost_micros
    assert second.cost_micros
    assert second.cost_micros < first.cost_micros


async def test_at_most_four_markers(wired: WireRig, alice: Person) -> None:
    if not isinstance(wired, AnthropicRig):
        pytest.skip("has no markers")
    tools = tuple(Tool(f"t{number}", "d", '{"type": "object"}') for number in range(3))
    said = [Message("user", "q"), Message("assistant", "a")] * 5
    await seam.complete("chat", Prompt(("a", "b"), (*said, Message("user", "q")), tools), scope=alice.scope)
    (call,) = wired.scenario.calls()
    assert call.body.count(b'"cache_control"') == 4


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30).filter(
    str.strip
)


@examples(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, min_size=1, max_size=3), st.lists(words, min_size=2, max_size=8), st.booleans())
def test_each_turn_begins_with_the_bytes_of_the_one_before(
    wired: WireRig, system: list[str], said: list[str], with_tools: bool
) -> None:
    """On what went over the wire, cache markers aside."""
    tools = (
        (Tool("search", said[0], '{"type": "object", "properties": {"b": {"type": "string"}}}'),)
        if with_tools
        else ()
    )
    model = wired.route.partition(":")[2]
    wired.scenario.play([Play(text=("x",))])

    async def turns() -> None:
        prompt = Prompt(tuple(system), (Message("user", said[0]),), tools)
        for text in said[1:]:
            async for _ in backend(wired.provider).stream(Request("chat", model, prompt)):
                pass
            prompt = prompt.followed_by(Message("assistant", text), Message("user", text[::-1] + "?"))

    asyncio.run(turns())
    wires = wired.wires()
    assert len(wires) == len(said) - 1
    assert all(after.startswith(before) for before, after in itertools.pairwise(wires))


async def test_a_lone_surrogate_does_not_stop_a_request(wired: WireRig, alice: Person) -> None:
    prompt = replace(chat_prompt(), messages=(Message("user", "half a \ud83d pair"),))
    assert (await seam.complete("chat", prompt, scope=alice.scope)).text


async def test_a_stream_left_halfway_lets_go_of_its_connection(wired: WireRig, alice: Person) -> None:
    wired.scenario.play([Play(text=("one ", *["more "] * 500), pace=0.01)])
    await heard(chat_prompt(), alice, until=TextDelta)
    assert wired.closed() == 1
    rows = await unit(alice.scope, lambda: list(LedgerEntry.objects.all()))
    assert outcomes(rows) == [(1, "cancelled", "")]


async def test_many_streams_at_once(wired: WireRig, alice: Person) -> None:
    wired.scenario.play([Play(text=("one ", "two ", "three"), pace=0.01)])
    answers = await asyncio.gather(*(heard(chat_prompt(), alice) for _ in range(20)))
    assert all(isinstance(each[-1], Finished) for each in answers)
    assert len(await ledger(alice)) == 20


def test_each_loop_has_its_own_connections(wired: WireRig) -> None:
    """A worker runs each task on a loop of its own."""

    async def ask() -> None:
        request = Request("chat", wired.route.partition(":")[2], chat_prompt())
        assert [each async for each in backend(wired.provider).stream(request)]

    for _ in range(3):
        asyncio.run(ask())
    assert len(wired.scenario.calls()) == 3
