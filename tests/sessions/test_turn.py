"""A turn, from the message to the durable answer, with a model that does as it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from memberintel.llm.backends import scripted
from memberintel.tenancy.unit import unit
from sessions import actions, lease, live, turn
from sessions.actions import Said
from sessions.domain import events as kinds
from sessions.domain.events import Event
from sessions.domain.projection import provider_prompt
from sessions.models import Session
from tests.conftest import Person
from tests.sessions.talk import QUESTION, Script, events_of, heard, say, spoken, until_written

pytestmark = pytest.mark.usefixtures("quick")


async def test_a_turn_ends_in_a_durable_answer(alice: Person, script: Script) -> None:
    script({"steps": [{"reasoning": "hm"}, {"text": "Look at "}, {"text": "onboarding."}]})
    said = await say(alice)
    events = await heard(said)
    assert events[0][0] == "turn"
    assert events[-1] == ("done", {"outcome": "complete"})
    assert spoken(events) == "Look at onboarding."
    assert spoken(events, "reasoning") == "hm"
    written = await events_of(alice, said)
    assert [event.kind for event in written][:3] == ["session_opened", "user_message", "context_frozen"]
    assert written[-1].kind == "assistant_turn"
    assert kinds.text_of(written[-1]) == "Look at onboarding."
    assert written[-1].payload["provider"] == "scripted"


async def test_the_prompt_is_frozen_once_a_session(alice: Person, script: Script) -> None:
    name = script({"steps": [{"text": "one"}]}, {"steps": [{"text": "two"}]})
    first = await say(alice)
    await heard(first)
    second = await say(alice, "And what is the second thing to look at after that?")
    await heard(second)
    written = await events_of(alice, second)
    assert [event.kind for event in written].count("context_frozen") == 1
    before, after = scripted.wires(name)
    assert after.startswith(before)


async def test_what_is_sent_is_what_the_log_says(alice: Person, script: Script) -> None:
    name = script({"steps": [{"text": "one"}]})
    said = await say(alice)
    await heard(said)
    written = await events_of(alice, said)
    asked = [event for event in written if event.kind != "assistant_turn"]
    assert scripted.wires(name) == [provider_prompt(asked).wire()]


async def test_a_long_answer_is_saved_while_it_streams(alice: Person, script: Script, tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    gates = [tmp_path / "first", tmp_path / "second"]
    ends = [{"text": " more", "gate": str(gate)} for gate in gates]
    script({"steps": [{"words": words}, *ends]})
    said = await say(alice)
    newest = 0
    for gate in gates:

        def later(event: Event, after: int = newest) -> bool:
            return event.seq > after

        await until_written(alice, said, "pending_state", later)
        newest = (await events_of(alice, said))[-1].seq
        gate.touch()
    await heard(said)
    written = await events_of(alice, said)
    pending = [kinds.text_of(event) for event in written if event.kind == "pending_state"]
    assert len(pending) >= 2
    answer = kinds.text_of(written[-1])
    assert answer == f"{words} more more"
    assert answer.startswith("".join(pending))


async def test_stop_keeps_what_was_generated_and_marks_it(alice: Person, script: Script) -> None:
    script({"steps": [{"text": "So far so good."}, {"stall": True}]})
    said = await say(alice)
    await until_written(alice, said, "pending_state")
    await unit(alice.scope, lease.ask_to_stop, said.session, said.turn.id)  # as another process would
    events = await heard(said)
    assert events[-1] == ("done", {"outcome": "stopped"})
    last = (await events_of(alice, said))[-1]
    assert (last.kind, last.payload["outcome"], kinds.text_of(last)) == (
        "assistant_turn",
        "stopped",
        "So far so good.",
    )


@pytest.mark.parametrize(
    ("steps", "code", "retryable"),
    [
        ([{"error": "overloaded"}], "overloaded", True),
        ([{"text": "Half an"}, {"error": "unavailable"}], "unavailable", True),
        ([{"error": "refused"}], "refused", False),
        ([{"text": "Half an"}, {"silence": True}], "unavailable", True),
    ],
)
async def test_a_failing_provider_ends_in_an_error_a_person_can_act_on(
    alice: Person, script: Script, steps: list[dict[str, Any]], code: str, retryable: bool
) -> None:
    script({"steps": steps})
    said = await say(alice)
    name, data = (await heard(said))[-1]
    assert name == "error"
    assert (data["code"], data["retryable"], data["kept"]) == (code, retryable, True)
    assert len(data["message"]) > 20
    written = await events_of(alice, said)
    assert kinds.text_of(written[1]) == QUESTION
    kept = "".join(kinds.text_of(event) for event in written if event.kind == "pending_state")
    assert kept == "".join(step.get("text", "") for step in steps)
    assert written[-1].kind == "turn_failed"


async def test_retry_sends_the_same_bytes_and_answers(alice: Person, script: Script) -> None:
    name = script({"steps": [{"text": "Half"}, {"error": "overloaded"}]}, {"steps": [{"text": "Whole."}]})
    said = await say(alice)
    await heard(said)
    following, began = await unit(
        alice.scope, lambda: actions.retry(session=said.session, turn=said.turn.id, attempt=1)
    )
    assert began
    turn.start(alice.scope, said.session, following)
    events = await heard(Said(said.session, following, said.seq))
    assert spoken(events) == "Whole."
    first, second = scripted.wires(name)
    assert first == second


async def test_the_next_answer_sees_the_one_that_was_cut_off(alice: Person, script: Script) -> None:
    name = script(
        {"steps": [{"text": "The first step is"}, {"error": "unavailable"}]}, {"steps": [{"text": "ok"}]}
    )
    said = await say(alice)
    await heard(said)
    await heard(await say(alice, "Please go on from where you were cut off a moment ago."))
    before, after = scripted.wires(name)
    assert after.startswith(before)
    assert "The first step is" in after.decode()


async def test_a_turn_whose_lease_was_taken_writes_nothing_more(alice: Person, script: Script) -> None:
    script({"steps": [{"text": "Mine."}, {"stall": True}]})
    said = await say(alice)
    await until_written(alice, said, "pending_state")
    await unit(alice.scope, lease.revoke, said.session, said.turn.id)
    events = await heard(said)
    assert events[-1][1]["code"] == "interrupted"
    written = await events_of(alice, said)
    assert written[-1].kind == "pending_state"


async def test_a_process_that_leaves_saves_what_it_has(
    alice: Person, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "DRAIN_SECONDS", 0.1)
    script({"steps": [{"text": "Unfinished"}, {"stall": True}]})
    said = await say(alice)
    await until_written(alice, said, "pending_state")
    await turn.drain()
    written = await events_of(alice, said)
    assert (written[-1].kind, written[-1].payload["code"]) == ("turn_failed", "shutdown")


async def test_a_session_gets_a_title_from_the_title_model(
    alice: Person, script: Script, settings: LazySettings
) -> None:
    script({"steps": [{"text": "An answer."}]})
    scripted.script("titles", [{"steps": [{"text": '"Churn in May"'}]}])
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "title": ("scripted:titles",)}
    said = await say(alice)
    await heard(said)
    assert await unit(alice.scope, lambda: Session.objects.get(id=said.session).title) == "Churn in May"


async def test_followers_that_come_late_or_come_back_miss_nothing(alice: Person, script: Script) -> None:
    script({"steps": [{"words": "one two three four five six", "delay": 0.03}]})
    said = await say(alice)
    whole = await heard(said)
    feed = live.feed_of(said.turn.id, 1)
    assert feed is not None
    for cut in range(len(whole) + 1):
        rest = [(event.name, event.data) async for event in feed.follow(cut)]
        assert whole[:cut] + rest == whole
