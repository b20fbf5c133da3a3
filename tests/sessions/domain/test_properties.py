"""What holds for every log the product can write, at every moment of its growth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memberintel.llm.backends.anthropic import asking as anthropic
from memberintel.llm.backends.base import Request
from memberintel.llm.backends.gemini import asking as gemini
from memberintel.llm.types import Message, Prompt, ReasoningDelta, TextDelta, ToolCall, ToolCallDelta
from sessions.domain import events as kinds
from sessions.domain import marks
from sessions.domain.events import Event
from sessions.domain.projection import live, live_start, llm_context, provider_prompt, system_sections
from sessions.domain.rounds import Answer
from sessions.domain.transcript import AnswerItem, Item, MessageItem, ui_transcript
from sessions.domain.turns import fold
from tests.sessions.domain.logs import Draw, Log, live_logs, logs, texts

Rounds = list[tuple[Message, Message]]
Sent = Callable[[Prompt], bytes]
CLAUDE, GEMINI = "claude-opus-5-5", "gemini-3.8-flash"


def to_anthropic(prompt: Prompt) -> bytes:
    """The parts of the request in the order in which they are cached, without the markers."""
    made = anthropic.body(Request("chat", CLAUDE, prompt))
    parts = [made.get("tools", []), made.get("system", []), *made["messages"]]
    return b"\n".join(json.dumps(_unmarked(part)).encode() for part in parts)


def _unmarked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [_unmarked(part) for part in value] if isinstance(value, list) else value


def to_gemini(prompt: Prompt) -> bytes:
    """The parts of the request in the order in which they are cached."""
    config = gemini.config(Request("chat", GEMINI, prompt))
    head = config.model_dump_json(include={"system_instruction", "tools"}, exclude_none=True)
    said = [content.model_dump_json(exclude_none=True) for content in gemini.contents(prompt, GEMINI)]
    return "\n".join([head, *said]).encode()


PROVIDERS: tuple[Sent, ...] = (to_anthropic, to_gemini)


@st.composite
def answers(draw: Draw) -> Rounds:
    """The rounds of an answer that uses tools, as the messages each adds to the requests that follow."""
    answer, made = Answer(), []
    for _ in range(draw(st.integers(1, 4))):
        answer.begin()
        for delta in draw(st.lists(deltas, max_size=4)):
            answer.take(delta)
        answer.take(ToolCallDelta(draw(calls)))
        places = answer.call()
        for place in draw(st.permutations(list(places))):
            answer.called(place, draw(texts), error=draw(st.booleans()))
        made.append((answer.round.said(), answer.results(places, last=draw(st.booleans()))))
    return made


calls = st.builds(
    ToolCall,
    id=st.sampled_from(["call_1", "call_2", "toolu 9", ""]),
    name=st.sampled_from(["search_memory", "no such tool", ""]),
    arguments=st.sampled_from(['{"b":1,"a":"\u00fc"}', "{}", '["a"]', ""]),
    signature=st.sampled_from(["", f"{GEMINI} c2lnbmVk"]),
)
deltas = st.one_of(
    st.builds(TextDelta, texts),
    st.builds(ReasoningDelta, texts, st.sampled_from(["", f"{CLAUDE} thinking c2ln"])),
    st.builds(ToolCallDelta, calls),
)
BREAKS = {kinds.COMPACTION_APPLIED, kinds.PROMPT_REFRESHED}

some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def moments(log: Log) -> Iterator[list[Event]]:
    """The log after each of its events."""
    return (log.events[:length] for length in range(len(log.events) + 1))


@many
@given(live_logs())
def test_between_two_turn_starts_the_former_request_is_a_prefix_of_the_latter(log: Log) -> None:
    for before, after in zip(log.starts, log.starts[1:], strict=False):
        if any(event.kind in BREAKS for event in log.events[before:after]):
            continue
        first = provider_prompt(log.events[:before]).wire()
        second = provider_prompt(log.events[:after]).wire()
        assert second.startswith(first)


@some
@given(live_logs(), st.sampled_from(PROVIDERS))
def test_and_so_it_is_on_the_bytes_that_go_to_a_provider(log: Log, sent: Sent) -> None:
    for before, after in zip(log.starts, log.starts[1:], strict=False):
        if any(event.kind in BREAKS for event in log.events[before:after]):
            continue
        assert sent(provider_prompt(log.events[:after])).startswith(
            sent(provider_prompt(log.events[:before]))
        )


@some
@given(live_logs(max_turns=3), answers(), st.sampled_from(PROVIDERS))
def test_inside_a_turn_each_round_extends_the_one_before(log: Log, given: Rounds, sent: Sent) -> None:
    for length in log.starts[-1:]:
        first = provider_prompt(log.events[:length])
        wires, bytes_sent = [first.wire()], [sent(first)]
        added: list[Message] = []
        for messages in given:
            added += messages
            following = first.followed_by(*added)
            wires.append(following.wire())
            bytes_sent.append(sent(following))
        for requests in (wires, bytes_sent):
            assert all(after.startswith(before) for before, after in pairwise(requests))


@some
@given(answers())
def test_every_call_of_a_round_has_its_result_and_an_id_of_its_own(given: Rounds) -> None:
    ids = [call.id for asked, _ in given for call in asked.calls]
    assert len(set(ids)) == len(ids)
    for asked, brought in given:
        assert [call.id for call in asked.calls] == [result.call_id for result in brought.results]
        assert not asked.results
        assert not brought.calls


@many
@given(live_logs())
def test_a_retry_sends_the_same_bytes(log: Log) -> None:
    for before, after in zip(log.starts, log.starts[1:], strict=False):
        between = log.events[before:after]
        if any(event.kind == kinds.USER_MESSAGE or event.kind in BREAKS for event in between):
            continue
        assert provider_prompt(log.events[:before]).wire() == provider_prompt(log.events[:after]).wire()


@many
@given(live_logs())
def test_a_request_ends_in_the_message_it_answers(log: Log) -> None:
    for length in log.starts:
        asked = [event for event in log.events[:length] if event.kind == kinds.USER_MESSAGE][-1]
        last = llm_context(log.events[:length])[-1]
        assert last.role == "user"
        assert last.text.startswith(asked.content["text"]) or not asked.content["text"].strip()


@many
@given(logs())
def test_the_live_part_gives_the_context_of_the_whole_log(log: Log) -> None:
    for events in moments(log):
        part = live(events)
        assert llm_context(part) == llm_context(events)
        assert system_sections(part) == system_sections(events)
        assert live_start(part) == live_start(events)
        assert [event for event in part if event.seq >= live_start(events)] == [
            event for event in events if event.seq >= live_start(events)
        ]
        assert len([event for event in part if event.seq < live_start(events)]) <= 1


@many
@given(logs())
def test_roles_alternate_from_the_customer_on_and_no_message_is_blank(log: Log) -> None:
    for events in moments(log):
        messages = llm_context(events)
        assert [message.role for message in messages] == [
            ("user", "assistant")[place % 2] for place in range(len(messages))
        ]
        assert all(message.text.strip() for message in messages)


@many
@given(logs())
def test_no_tool_call_or_result_of_an_earlier_turn_is_sent(log: Log) -> None:
    for message in llm_context(log.events):
        assert not message.calls
        assert not message.results


@many
@given(logs())
def test_texts_that_imitate_roles_make_no_message(log: Log) -> None:
    plain = [replace(event, content=_neutral(event.content)) for event in log.events]
    assert [message.role for message in llm_context(log.events)] == [
        message.role for message in llm_context(plain)
    ]


def _neutral(value: Any) -> Any:
    """The same content with a harmless word for every text that has one."""
    if isinstance(value, Mapping):
        return {key: _neutral(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_neutral(part) for part in value]
    return "word" if isinstance(value, str) and value.strip() else value


@many
@given(live_logs())
def test_what_stands_between_delimiters_cannot_close_them(log: Log) -> None:
    summary = next((event for event in reversed(log.events) if event.kind == kinds.COMPACTION_APPLIED), None)
    if summary is not None:
        first = llm_context(log.events)[0].text
        assert first.count("<") == first.count(">") == 2
        assert first.endswith("\n</summary>")


@many
@given(logs())
def test_the_transcript_has_the_turns_of_the_context_and_those_a_summary_covers(log: Log) -> None:
    for events in moments(log):
        start = live_start(events)
        items = ui_transcript(events)
        assert _turns(items, start) == [turn.id for turn in fold(live(events))]
        assert _turns(items, 1) == [turn.id for turn in fold(events)]
        shown = [item.text for item in items if isinstance(item, MessageItem) and item.seq >= start]
        sent = [message.text for message in llm_context(events) if message.role == "user"]
        sent = [text for text in sent if text != marks.NO_QUESTION or text in shown]
        sent = sent[1:] if start > 1 else sent
        assert len(sent) >= len(shown)
        assert all(any(text in other or not text.strip() for other in sent) for text in shown)


def _turns(items: Sequence[Item], start: int) -> list[Any]:
    found = dict.fromkeys(
        item.turn for item in items if isinstance(item, MessageItem | AnswerItem) and item.seq >= start
    )
    return list(found)


@many
@given(logs())
def test_every_event_is_shown_in_exactly_one_place(log: Log) -> None:
    for events in moments(log):
        shown: list[int] = []
        for item in ui_transcript(events, running=log.turn):
            shown += item.seqs if isinstance(item, AnswerItem) else (item.seq,)
        assert sorted(shown) == [event.seq for event in events]


@many
@given(logs())
def test_the_transcript_holds_every_word_of_the_log(log: Log) -> None:
    written = [
        str(event.content.get("text") or "") for event in log.events if event.kind == kinds.USER_MESSAGE
    ]
    answers = [str(event.content["text"]) for event in log.events if event.kind == kinds.ASSISTANT_TURN]
    items = ui_transcript(log.events)
    assert [item.text for item in items if isinstance(item, MessageItem)] == written
    ended = [item for item in items if isinstance(item, AnswerItem) and item.state in ("complete", "stopped")]
    assert [item.text for item in ended] == answers


@many
@given(logs())
def test_only_the_last_turn_can_be_retried(log: Log) -> None:
    for events in moments(log):
        items = ui_transcript(events)
        offered = [item for item in items if isinstance(item, AnswerItem) and item.may_retry]
        assert len(offered) <= 1
        assert all(item.turn == fold(events)[-1].id for item in offered)


@many
@given(logs())
def test_any_part_of_a_log_can_be_projected(log: Log) -> None:
    """Also one no loader would ask for: a broken log must still open."""
    for first in range(0, len(log.events), 3):
        llm_context(log.events[first:])
        ui_transcript(log.events[first:], running=log.turn, attempt=log.attempt)
        ui_transcript(log.events[first:], running=log.turn)
