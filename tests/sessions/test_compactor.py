"""A conversation that outgrows its model's window goes on, whatever the summariser does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.template.loader import render_to_string

from memberintel.lib import tokens
from memberintel.llm.backends import scripted
from memberintel.llm.types import Message, Prompt
from memberintel.tenancy.unit import unit
from sessions import actions, compactor, live, log, turn
from sessions.actions import Said
from sessions.compactor import Compactor
from sessions.domain import events as kinds
from sessions.domain import marks, projection
from sessions.domain.events import Event
from sessions.domain.transcript import CompactionItem, MessageItem, ui_transcript
from sessions.domain.weights import weigh
from tests.conftest import Person
from tests.waiting import PATIENCE

WINDOW = 4_000
FILLER = "Members leave after the third week, and I wonder what it is about the third week. " * 8
GOOD = {
    "steps": [{"text": "Alice decided on 49 euros from 1 May; Bob writes to 412 members. Open: the refund."}]
}
ANSWER = {
    "steps": [{"text": "Look at the third week: ask three of those who left, then change one thing. " * 6}]
}
Script = Callable[..., str]


@pytest.fixture(autouse=True)
async def _quick(settings: LazySettings) -> AsyncIterator[None]:
    settings.LLM_PATIENCE = {**settings.LLM_PATIENCE, "tries": 1}
    settings.ADVISOR_TOOLS = []  # the windows here are small, and what tools weigh is tested elsewhere
    yield
    await turn.drain()


@pytest.fixture
def script(settings: LazySettings) -> Script:
    """`script("compact", *plays)`: that purpose is served by these plays; chat gets the small window."""

    def play(purpose: str, *plays: dict[str, Any], window: int = WINDOW) -> str:
        name = f"c{uuid4().hex[:8]}"
        scripted.script(name, list(plays))
        settings.LLM_ROUTES = {**settings.LLM_ROUTES, purpose: (f"scripted:{name}",)}
        if purpose == "chat":
            settings.LLM_WINDOWS = {**settings.LLM_WINDOWS, f"scripted:{name}": window}
        return name

    return play


async def say(person: Person, text: str) -> tuple[Said, list[tuple[str, dict[str, Any]]]]:
    """Say it and hear the answer to its end; then what tidies up afterwards has ended too."""
    said: Said = await unit(person.scope, lambda: actions.say(text=text, client_key=f"key-{uuid4()}"))
    turn.start(person.scope, said.session, said.turn)
    await asyncio.sleep(0)
    feed = live.feed_of(said.turn.id, said.turn.attempt)
    assert feed is not None
    heard = [(event.name, event.data) async for event in feed.follow()]
    await asyncio.gather(*compactor._tidying.values())
    return said, heard


async def talk(person: Person, turns: int, text: str = FILLER) -> Said:
    for number in range(turns):
        said, heard = await say(person, f"Message {number}. {text}")
        assert heard[-1] == ("done", {"outcome": "complete"})
    return said


async def events_of(person: Person, session: UUID) -> list[Event]:
    return await unit(person.scope, log.load, session)


def of_kind(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


def estimate(wire: bytes) -> int:
    """Tokens of a request, counted anew from its bytes."""
    system, tools, *messages = (json.loads(line) for line in wire.splitlines())
    assert tools == {"tools": []}
    said = tuple(Message(message["role"], message["text"]) for message in messages)
    return Prompt(tuple(system["system"]), said).estimate()


async def grown(person: Person, script: Script) -> UUID:
    """A conversation just above the line of a window of 4,000, not yet compacted."""
    script("chat", ANSWER, window=1_000_000)
    script("compact", GOOD)
    return (await talk(person, 9)).session


# --- a conversation goes on ------------------------------------------------------------------------------


async def test_a_conversation_crosses_the_line_and_goes_on(alice: Person, script: Script) -> None:
    chat, summaries = script("chat", ANSWER), script("compact", GOOD)
    said = await talk(alice, 14)
    events = await events_of(alice, said.session)
    compactions = of_kind(events, kinds.COMPACTION_APPLIED)
    assert compactions
    assert all(event.payload["method"] == "model" for event in compactions)
    assert all(event.payload["tokens_after"] < event.payload["tokens_before"] for event in compactions)
    for event in compactions:
        assert events[event.seq].kind == kinds.PROMPT_REFRESHED
        assert events[event.seq].payload["sections"][0]["name"] == "base"
    assert max(estimate(wire) for wire in scripted.wires(chat)) <= 0.6 * WINDOW
    assert "412 members" in scripted.wires(chat)[-1].decode()
    asked = scripted.wires(summaries)[0].decode()
    assert "[1] customer: Message 0." in asked
    assert "Keep, as they were said" in asked
    assert "<earlier_summary>\\n" not in asked
    assert "Alice decided on 49 euros" in scripted.wires(summaries)[-1].decode()


async def test_what_a_summary_covers_stays_in_the_transcript(alice: Person, script: Script) -> None:
    script("chat", ANSWER)
    script("compact", GOOD)
    said = await talk(alice, 10)
    items = ui_transcript(await events_of(alice, said.session))
    assert [item.text[:10] for item in items if isinstance(item, MessageItem)] == [
        f"Message {number}."[:10] for number in range(10)
    ]
    summaries = [item for item in items if isinstance(item, CompactionItem)]
    assert all("412 members" in item.summary for item in summaries)
    page = render_to_string("sessions/_item.html", {"item": summaries[0]})
    assert page.strip().startswith('<details class="fold"')
    assert "412 members" in page


async def test_the_live_part_alone_gives_the_whole_context(alice: Person, script: Script) -> None:
    script("chat", ANSWER)
    script("compact", GOOD)
    said = await talk(alice, 12)
    whole = await events_of(alice, said.session)
    part = await unit(alice.scope, log.load_live, said.session)
    assert len(part) < len(whole)
    assert projection.provider_prompt(part).wire() == projection.provider_prompt(whole).wire()


async def test_weights_are_stored_with_the_events(
    alice: Person, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("chat", ANSWER)
    script("compact", GOOD)
    said = await talk(alice, 9)
    part = await unit(alice.scope, log.load_live, said.session)
    counted = projection.provider_prompt(part).estimate()

    def refuse(text: str) -> int:
        raise AssertionError("the history was counted again")

    monkeypatch.setattr(tokens, "count", refuse)
    assert counted <= weigh(part).total <= counted * 1.1 + 50


async def test_the_summary_is_made_before_the_call_on_the_turn_that_crosses(
    alice: Person, script: Script
) -> None:
    session = await grown(alice, script)
    chat = script("chat", ANSWER)
    said, heard = await say(alice, "And what now?")
    assert ("notice", {"text": compactor.SUMMARISING}) in heard
    assert [name for name, _ in heard].index("notice") < [name for name, _ in heard].index("text")
    events = await events_of(alice, session)
    compaction = of_kind(events, kinds.COMPACTION_APPLIED)[0]
    assert compaction.turn == said.turn.id
    assert estimate(scripted.wires(chat)[0]) <= 0.6 * WINDOW
    assert compaction.seq < of_kind(events, kinds.ASSISTANT_TURN)[-1].seq


async def test_after_an_answer_the_next_turn_finds_the_work_done(alice: Person, script: Script) -> None:
    script("compact", GOOD)
    script("chat", {"steps": [{"text": "A long answer it is. " * 420}]})
    said, heard = await say(alice, "Tell me all of it, please.")
    assert ("notice", {"text": compactor.SUMMARISING}) not in heard
    assert not of_kind(await events_of(alice, said.session), kinds.COMPACTION_APPLIED)  # one turn: it stays
    _, heard = await say(alice, "And the second thing?")
    assert ("notice", {"text": compactor.SUMMARISING}) in heard
    script("chat", {"steps": [{"text": "A shorter answer. " * 250}]})
    await say(alice, "And the third thing?")
    script("chat", {"steps": [{"text": "A shorter answer. " * 250}]})
    await say(alice, "And the fourth thing?")
    events = await events_of(alice, said.session)
    after = [event for event in of_kind(events, kinds.COMPACTION_APPLIED) if event.turn is None]
    assert after
    assert all(
        events[event.seq - 2].kind in (kinds.ASSISTANT_TURN, kinds.PROMPT_REFRESHED) for event in after
    )


# --- summarisers that fail -------------------------------------------------------------------------------

BAD = {
    "fails": {"steps": [{"error": "overloaded"}]},
    "returns nothing": {"steps": [{"text": " "}]},
    "is cut off": {"steps": [{"text": "Alice decided"}], "stop_reason": "max_tokens"},
    "returns more than it got": {"steps": [{"text": FILLER * 40}]},
    "ends early": {"steps": [{"text": "Alice"}, {"silence": True}]},
    "hangs": {"steps": [{"text": "Alice"}, {"stall": True}]},
}


@pytest.mark.parametrize("how", BAD)
async def test_a_bad_summary_never_bounds_the_history_that_still_fits(
    alice: Person, script: Script, settings: LazySettings, how: str
) -> None:
    session = await grown(alice, script)
    settings.TURN_DEADLINES = {**settings.TURN_DEADLINES, "compact": 0.4}
    before = weigh(await unit(alice.scope, log.load_live, session)).total
    chat = script("chat", ANSWER, window=int(before / 0.7))
    script("compact", BAD[how])
    _, heard = await say(alice, "And what now?")
    assert heard[-1] == ("done", {"outcome": "complete"})
    events = await events_of(alice, session)
    assert not of_kind(events, kinds.COMPACTION_APPLIED)
    sent = scripted.wires(chat)[0].decode()
    assert all(f"Message {number}." in sent for number in range(9))


@pytest.mark.parametrize("how", BAD)
async def test_an_extract_stands_in_where_the_request_would_not_fit(
    alice: Person, script: Script, settings: LazySettings, how: str
) -> None:
    script("chat", ANSWER, window=1_000_000)
    await say(alice, "We decided to raise the price to 49 euros from 1 May, and Bob agreed to it.")
    session = await grown(alice, script)
    settings.TURN_DEADLINES = {**settings.TURN_DEADLINES, "compact": 0.4}
    chat = script("chat", ANSWER, window=2_800)
    script("compact", BAD[how])
    _, heard = await say(alice, "And what now?")
    assert ("notice", {"text": compactor.PICKED}) in heard
    assert heard[-1] == ("done", {"outcome": "complete"})
    events = await events_of(alice, session)
    stood_in = of_kind(events, kinds.COMPACTION_APPLIED)
    assert stood_in
    assert {event.payload["method"] for event in stood_in} == {"extractive"}
    sent = scripted.wires(chat)[0]
    assert estimate(sent) <= 0.8 * 2_800
    assert "raise the price to 49 euros" in sent.decode()
    assert marks.EXTRACT_LABEL in sent.decode()

    # The next summariser that works gets that stretch from the raw log, not the extract.
    settings.TURN_DEADLINES = {**settings.TURN_DEADLINES, "compact": PATIENCE}
    summaries = script("compact", GOOD)
    await talk(alice, 4)
    asked = scripted.wires(summaries)[0].decode()
    assert "<earlier_summary>\\n" not in asked
    assert "[1] customer: We decided to raise" in asked
    assert "Message 0." in asked
    events = await events_of(alice, session)
    assert of_kind(events, kinds.COMPACTION_APPLIED)[-1].payload["method"] == "model"


async def test_a_hanging_summariser_holds_the_turn_no_longer_than_its_deadline(
    alice: Person, script: Script, settings: LazySettings
) -> None:
    await grown(alice, script)
    settings.TURN_DEADLINES = {**settings.TURN_DEADLINES, "compact": 1.0}
    script("chat", ANSWER, window=2_000)
    hanging = script("compact", BAD["hangs"])
    said: Said = await unit(alice.scope, lambda: actions.say(text="And now?", client_key=f"key-{uuid4()}"))
    events = await unit(alice.scope, log.load_live, said.session)
    work = Compactor(alice.scope, said.session, said.turn)
    await work.fit(events)
    assert work.passes > 1
    assert len(scripted.wires(hanging)) == 1  # one deadline for all passes


async def test_a_summariser_that_failed_is_left_alone_for_a_while(
    alice: Person, script: Script, settings: LazySettings
) -> None:
    session = await grown(alice, script)
    script("chat", ANSWER, window=5_000)
    failing = script("compact", BAD["fails"])
    await talk(alice, 3)
    assert len(scripted.wires(failing)) == 1
    settings.COMPACT_AGAIN_AFTER_SECONDS = 0
    compactor._resting.clear()
    await say(alice, "And what now?")
    assert len(scripted.wires(failing)) > 1
    assert not of_kind(await events_of(alice, session), kinds.COMPACTION_APPLIED)


async def test_a_stretch_too_long_for_the_summariser_is_read_in_parts(
    alice: Person, script: Script, settings: LazySettings
) -> None:
    await grown(alice, script)
    script("chat", ANSWER)
    name = script(
        "compact", {"steps": [{"text": "Part one."}]}, {"steps": [{"text": "Parts one and two."}]}, GOOD
    )
    settings.LLM_WINDOWS = {**settings.LLM_WINDOWS, f"scripted:{name}": 3_000}
    said, _ = await say(alice, "And what now?")
    asked = [wire.decode() for wire in scripted.wires(name)]
    assert len(asked) >= 2
    assert "<earlier_summary>\\nPart one.\\n</earlier_summary>" in asked[1]
    events = await events_of(alice, said.session)
    assert of_kind(events, kinds.COMPACTION_APPLIED)


async def test_a_message_that_can_never_fit_ends_in_a_typed_error_that_names_it(
    alice: Person, script: Script
) -> None:
    await grown(alice, script)
    script("chat", ANSWER)
    said, heard = await say(alice, "Everything at once: " + FILLER * 20)
    name, data = heard[-1]
    assert (name, data["code"], data["retryable"]) == ("error", "too_large", False)
    assert "your message" in data["message"]
    assert "smaller parts" in data["message"]
    events = await events_of(alice, said.session)
    assert events[-1].kind == kinds.TURN_FAILED
    assert len(of_kind(events, kinds.COMPACTION_APPLIED)) <= 3
    _, heard = await say(alice, "Then in smaller parts: what about the third week?")
    assert heard[-1] == ("done", {"outcome": "complete"})


async def test_a_document_that_leaves_no_room_is_named(
    alice: Person, script: Script, settings: LazySettings
) -> None:
    from brain import actions as brain

    body = "We teach dance to grown-ups in nine towns. " * 400
    await unit(
        alice.scope,
        lambda: brain.save_document(kind="bible", body=body, base_version=0, by="customer", reason="x"),
    )
    script("chat", ANSWER)
    script("compact", GOOD)
    _, heard = await say(alice, "Hello")
    assert heard[-1][1]["code"] == "too_large"
    assert "your BIBLE document" in heard[-1][1]["message"]


# --- side by side ----------------------------------------------------------------------------------------


async def test_of_two_compactions_planned_from_the_same_one_wins(alice: Person, script: Script) -> None:
    session = await grown(alice, script)
    script("chat", ANSWER)
    script("compact", {"steps": [{"text": GOOD["steps"][0]["text"], "delay": 0.1}]})
    both = [Compactor(alice.scope, session), Compactor(alice.scope, session)]
    await asyncio.gather(*(work.tidy() for work in both))
    events = await events_of(alice, session)
    compactions = of_kind(events, kinds.COMPACTION_APPLIED)
    assert len(compactions) == len({event.payload["replaces_through_seq"] for event in compactions})
    throughs = [event.payload["replaces_through_seq"] for event in compactions]
    assert throughs == sorted(throughs)
    assert len(of_kind(events, kinds.PROMPT_REFRESHED)) == len(compactions)


async def test_a_summary_is_not_appended_once_another_came(alice: Person, script: Script) -> None:
    session = await grown(alice, script)

    def compact(expecting: int | None) -> int:
        draft = kinds.compaction_applied(
            replaces_through_seq=4, summary="x", method="model", tokens_before=9, tokens_after=3
        )
        return log.append_compaction(session, [draft, draft], expecting=expecting)

    before = len(await events_of(alice, session))
    with pytest.raises(log.Overtaken):
        await unit(alice.scope, compact, 3)
    assert len(await events_of(alice, session)) == before
    first = await unit(alice.scope, compact, None)
    assert first == before + 1
    with pytest.raises(log.Overtaken):
        await unit(alice.scope, compact, None)
    assert len(await events_of(alice, session)) == before + 2


async def test_what_is_said_while_a_summary_is_made_is_untouched(
    alice: Person, script: Script, tmp_path: Path
) -> None:
    session = await grown(alice, script)
    chat = script("chat", ANSWER)
    gate = tmp_path / "gate"
    summaries = script("compact", {"steps": [{"text": GOOD["steps"][0]["text"], "gate": str(gate)}]})
    work = asyncio.create_task(Compactor(alice.scope, session).tidy())
    async with asyncio.timeout(PATIENCE):
        while not scripted.wires(summaries):
            await asyncio.sleep(0.02)
    draft = kinds.user_message(text="Said meanwhile", tokens=2)
    await unit(alice.scope, log.append, session, draft, turn=log.Turn(uuid4(), 1, "test"))
    gate.touch()
    await work
    events = await events_of(alice, session)
    meanwhile = of_kind(events, kinds.USER_MESSAGE)[-1]
    assert meanwhile.seq < of_kind(events, kinds.COMPACTION_APPLIED)[0].seq
    await say(alice, "And what now?")
    sent = scripted.wires(chat)[-1].decode()
    assert "Said meanwhile" in sent
    assert sent.index("412 members") < sent.index("Said meanwhile") < sent.index("And what now?")


async def test_a_new_turn_waits_for_the_summary_that_is_being_made(alice: Person, script: Script) -> None:
    session = await grown(alice, script)
    chat = script("chat", ANSWER)
    summaries = script("compact", {"steps": [{"text": GOOD["steps"][0]["text"], "delay": 0.3}]})
    await compactor.tidy_later(Compactor(alice.scope, session), 10_000)
    _, heard = await say(alice, "And what now?")
    assert heard[-1] == ("done", {"outcome": "complete"})
    assert len(scripted.wires(summaries)) == 1
    assert "412 members" in scripted.wires(chat)[0].decode()


async def test_a_stopped_turn_stops_its_summary(alice: Person, script: Script) -> None:
    session = await grown(alice, script)
    script("chat", ANSWER)
    hanging = script("compact", BAD["hangs"])
    said: Said = await unit(alice.scope, lambda: actions.say(text="And now?", client_key=f"key-{uuid4()}"))
    turn.start(alice.scope, said.session, said.turn)
    async with asyncio.timeout(PATIENCE):
        while not scripted.wires(hanging):
            await asyncio.sleep(0.02)
    await turn.stop(said.turn.id)
    feed = live.feed_of(said.turn.id, 1)
    assert feed is not None
    assert [event.name async for event in feed.follow()][-1] == "done"
    assert not of_kind(await events_of(alice, session), kinds.COMPACTION_APPLIED)


async def test_an_offline_advisor_condenses_by_picking(
    alice: Person, script: Script, settings: LazySettings
) -> None:
    script("chat", ANSWER)
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "compact": ("offline:extractive",)}
    await say(alice, "We decided to raise the price to 49 euros from 1 May, and Bob agreed to it.")
    said = await talk(alice, 20)
    compactions = of_kind(await events_of(alice, said.session), kinds.COMPACTION_APPLIED)
    assert len(compactions) >= 2
    assert "raise the price to 49 euros" in kinds.text_of(compactions[-1], "summary")


# --- for a long time -------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_two_hundred_turns_stay_within_a_small_window(alice: Person, script: Script) -> None:
    chat = script("chat", ANSWER)
    script("compact", GOOD)
    said = await talk(alice, 200, "A price of 49, or of 59? I cannot decide, and May is near. " * 5)
    events = await events_of(alice, said.session)
    compactions = of_kind(events, kinds.COMPACTION_APPLIED)
    wires = scripted.wires(chat)
    assert len(wires) == 200
    assert max(map(estimate, wires)) <= 0.6 * WINDOW
    broken = [number for number, (one, other) in enumerate(pairwise(wires)) if not other.startswith(one)]
    assert 0 < len(broken) <= len(compactions) < 60
    asked = [event.seq for event in of_kind(events, kinds.USER_MESSAGE)]
    for number in broken:
        between = [event for event in compactions if asked[number] < event.seq < asked[number + 1] + 4]
        assert between
