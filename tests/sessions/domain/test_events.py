"""Events: exact bytes, and what the writers put where."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.llm.types import Tool
from sessions.domain import events as kinds

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_content_survives_its_bytes(content: dict[str, object]) -> None:
    assert kinds.decode(kinds.encode(content)) == content


def test_keys_keep_the_order_they_were_given_in() -> None:
    assert kinds.encode({"b": 1, "a": {"d": "é", "c": None}}) == '{"b":1,"a":{"d":"é","c":null}}'.encode()


def test_arguments_of_a_tool_are_kept_to_the_byte() -> None:
    arguments = '{"b": 1.0,  "a":"\\u00e9"}'
    draft = kinds.pending_state(
        tools=[{"id": "c", "name": "n", "arguments": arguments, "result": None, "error": False}]
    )
    assert kinds.decode(kinds.encode(draft.content))["tools"][0]["arguments"] == arguments


def test_a_lone_surrogate_fails_no_write() -> None:
    content = {"text": "half \ud83d a face 👩"}
    assert kinds.decode(kinds.encode(content)) == content


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        kinds.encode({"tokens": float("nan")})


@pytest.mark.parametrize("sealed", [b"", b"{", b"[]", b'"text"', b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_content_are_named_so(sealed: bytes) -> None:
    with pytest.raises(kinds.Undecodable):
        kinds.decode(sealed)


DRAFTS = [
    kinds.session_opened(off_record=True, continues=UUID(int=1), imported=True),
    kinds.user_message(text="SECRET", tokens=1),
    kinds.context_frozen(sections=[{"name": "soul", "digest": "d"}], tools=(Tool("a", "b", "{}"),)),
    kinds.recall(late=True),
    kinds.pending_state(text="SECRET", reasoning="SECRET"),
    kinds.assistant_turn(text="SECRET", reasoning="SECRET", tokens=1, model="m", provider="p"),
    kinds.turn_failed(code="overloaded", retryable=True, message="SECRET"),
    kinds.compaction_applied(
        replaces_through_seq=3, summary="SECRET", method="model", tokens_before=2, tokens_after=1
    ),
    kinds.prompt_refreshed(sections=[], tools=(Tool("a", "b", "{}"),)),
    kinds.session_closed(reason="idle", by="sweep"),
]


def test_every_kind_has_a_writer() -> None:
    assert {draft.kind for draft in DRAFTS} == kinds.KINDS


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: str(draft.kind))
def test_payloads_are_versioned_and_hold_no_words(draft: kinds.Draft) -> None:
    assert draft.payload["v"] == kinds.VERSIONS[draft.kind]
    assert "SECRET" not in json.dumps(draft.payload)
