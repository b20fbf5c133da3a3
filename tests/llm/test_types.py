from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from memberintel.llm.types import Message, Prompt, Reasoning, Tool, ToolCall, ToolResult

any_text = st.text(max_size=20) | st.just("a\ud800b")
calls = st.builds(ToolCall, any_text, any_text, any_text, any_text)
results = st.builds(ToolResult, any_text, any_text, st.booleans())
messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant"]),
    any_text,
    st.lists(calls, max_size=2).map(tuple),
    st.lists(results, max_size=2).map(tuple),
    st.lists(st.builds(Reasoning, any_text, any_text), max_size=2).map(tuple),
)
prompts = st.builds(
    Prompt,
    st.lists(any_text, max_size=3).map(tuple),
    st.lists(messages, max_size=4).map(tuple),
    st.lists(st.builds(Tool, any_text, any_text, any_text), max_size=2).map(tuple),
)


@given(prompts, st.lists(messages, max_size=4))
def test_further_messages_only_add_bytes_at_the_end(prompt: Prompt, more: list[Message]) -> None:
    assert prompt.followed_by(*more).wire().startswith(prompt.wire())


@given(prompts, prompts)
def test_different_prompts_have_different_bytes(one: Prompt, other: Prompt) -> None:
    assert (one.wire() == other.wire()) == (one == other)
    assert (one.digest() == other.digest()) == (one == other)


@given(prompts)
def test_every_line_of_the_wire_is_json_and_the_estimate_covers_it(prompt: Prompt) -> None:
    lines = prompt.wire().decode("utf-8", "surrogatepass").split("\n")
    assert lines.pop() == ""
    assert len([json.loads(line) for line in lines]) == 2 + len(prompt.messages)
    assert prompt.estimate() >= 4 * len(prompt.messages)


def test_exact_json_text_is_kept_as_it_was_written() -> None:
    written = '{"b": 1,\n "a": 1.50}'
    prompt = Prompt((), (Message("assistant", "", calls=(ToolCall("1", "t", written),)),))
    record = json.loads(prompt.wire().splitlines()[2])
    assert record["calls"][0][2] == written


def test_no_text_stands_in_a_repr() -> None:
    call = ToolCall("1", "t", "SECRET", "SECRET")
    message = Message(
        "user", "SECRET", (call,), (ToolResult("1", "SECRET"),), (Reasoning("SECRET", "SECRET"),)
    )
    assert "SECRET" not in repr(Prompt(("SECRET",), (message,), (Tool("t", "SECRET", "SECRET"),)))
