"""Whole turns that use tools, through the real SDKs: what each round sends, and that nothing sent before changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from pydantic import BaseModel
from pytest_django.fixtures import Settings

from brain.domain.tools import AdvisorTool, ToolContext, ToolError
from evals.loopback.scenario import Play
from sessions import turn
from sessions.domain import events as kinds
from sessions.domain import turn_memory
from tests.conftest import Person
from tests.contracts.rigs import WireRig, canonical
from tests.sessions.talk import spoken, talked


class Weight(BaseModel):
    """What to weigh."""

    animal: str
    unit: str = "kg"


async def _weigh(context: ToolContext, given: Weight) -> str:
    if given.animal == "unicorn":
        raise ToolError("no_such_animal", "Nobody has seen a unicorn.")
    await asyncio.sleep(0.02 if given.animal == "okapi" else 0)
    return f"{given.animal}: 7 {given.unit} <&\N{ELEPHANT}>"


weigh = AdvisorTool("weigh", "Weighs an animal.", Weight, _weigh)


@pytest.fixture(autouse=True)
async def _tools(settings: Settings) -> AsyncIterator[None]:
    settings.ADVISOR_TOOLS = [f"{__name__}.weigh"]
    settings.TURN_FLUSH_SECONDS = 0.05
    yield
    await turn.drain()


def ask(*animals: str, unit: str = "kg") -> tuple[tuple[str, str, str], ...]:
    """Calls for these animals."""
    return tuple(
        (f"toolu_{animal}", "weigh", json.dumps({"animal": animal, "unit": unit})) for animal in animals
    )


def chats(wired: WireRig) -> list[bytes]:
    """The requests of the chat, apart from titles and findings, without what differs by design: the last round
    may say that it is the last."""
    calls = [call for call in wired.scenario.calls() if b"Weighs an animal" in call.body]
    return [canonical(call).partition(b"\n")[2] for call in calls]


async def test_several_rounds_of_parallel_calls(wired: WireRig, alice: Person) -> None:
    wired.scenario.play(
        [
            Play(("I will ", "weigh them."), ("Which ", "first?"), ask("okapi", "zebra")),
            Play((), ("And now?",), ask("unicorn", "quagga")),
            Play(("An okapi has ", "7 kg.")),
        ]
    )
    told, written = await talked(alice)
    assert told[-1] == ("done", {"outcome": "complete"}), told[-1]
    assert spoken(told) == "I will weigh them.\n\nAn okapi has 7 kg."
    kept = kinds.tools_of(written[-1])
    assert [json.loads(call["arguments"])["animal"] for call in kept] == [
        "okapi",
        "zebra",
        "unicorn",
        "quagga",
    ]
    assert [call["error"] for call in kept] == [False, False, True, False]
    [failure] = turn_memory.of_content(written[-1].content).failures
    assert failure.error == "no_such_animal: Nobody has seen a unicorn."
    requests = chats(wired)
    assert len(requests) == 3
    assert all(after.startswith(before) for before, after in pairwise(requests))
    assert _results(requests[-1]) == [
        [call["result"] for call in kept][:2],
        [call["result"] for call in kept][2:],
    ]


async def test_the_next_turn_begins_where_the_first_request_of_this_one_ended(
    wired: WireRig, alice: Person
) -> None:
    wired.scenario.play([Play((), (), ask("okapi")), Play(("7 kg.",))])
    await talked(alice)
    before = chats(wired)
    wired.scenario.play([Play(("Indeed.",))])
    await talked(alice, "So heavy?")
    [after] = chats(wired)
    assert after.startswith(before[0])
    assert "okapi: 7 kg" not in after.decode()


async def test_arguments_that_do_not_fit_are_told_to_the_model_by_field(
    wired: WireRig, alice: Person
) -> None:
    bad = (("toolu_bad", "weigh", '{"unit": 7}'), ("toolu_none", "fly", "{}"))
    wired.scenario.play([Play((), (), bad), Play(("I could not.",))])
    told, _ = await talked(alice)
    assert told[-1][0] == "done"
    [[invalid, unknown]] = _results(chats(wired)[-1])
    assert invalid.startswith("invalid_arguments: animal: Field required; unit: ")
    assert unknown.startswith("unknown_tool: ")


async def test_after_the_last_round_the_provider_is_told_to_make_no_call(
    wired: WireRig, alice: Person, settings: Settings
) -> None:
    settings.TOOL_ROUNDS = 2
    wired.scenario.play([Play((), (), ask("okapi"))] * 2 + [Play(("7 kg.",))])
    told, _ = await talked(alice)
    assert told[-1][0] == "done"
    sent = [json.loads(call.body) for call in wired.scenario.calls() if b"Weighs an animal" in call.body]
    forbidden = [_choice(body) for body in sent]
    assert forbidden == [None, None, "none"]
    assert all(after.startswith(before) for before, after in pairwise(chats(wired)))


def _choice(body: dict[str, Any]) -> str | None:
    if "tool_choice" in body:
        return str(body["tool_choice"]["type"])
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    return str(config["mode"]).lower() if config else None


def _results(request: bytes) -> list[list[str]]:
    """What came back to the calls, round by round, as it went over the wire."""
    rounds = []
    for line in map(json.loads, request.splitlines()[2:]):
        content = line.get("content", line.get("parts", []))
        found = [text for part in content if isinstance(part, dict) and (text := _result(part)) is not None]
        if found:
            rounds.append(found)
    return rounds


def _result(part: dict[str, Any]) -> str | None:
    if part.get("type") == "tool_result":
        return str(part["content"])
    if "functionResponse" in part:
        return str(next(iter(part["functionResponse"]["response"].values())))
    return None
