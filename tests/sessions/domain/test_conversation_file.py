"""Reading a file of conversations: what it means, and what is said about one that is wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sessions.domain.conversation_file import FORMAT, BadFile, Conversation, parse

NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)


def message(at: str = "2024-03-09T18:30:00", role: str = "customer", text: str = "Hello") -> dict[str, Any]:
    return {"role": role, "at": at, "text": text}


def session(*messages: dict[str, Any], started_at: str | None = None) -> dict[str, Any]:
    return {"started_at": started_at or messages[0]["at"], "messages": list(messages)}


def whole(*sessions: dict[str, Any], **changed: Any) -> dict[str, Any]:
    given = {"format": FORMAT, "customer": "Ada", "advisor": "Ben", "timezone": "America/New_York"}
    return {**given, "sessions": list(sessions), **changed}


def read(given: Any, *, most: int = 1000) -> list[Conversation]:
    return list(parse(json.dumps(given).encode(), now=NOW, most_characters=most).sessions)


def faults(given: Any, *, most: int = 1000) -> list[str]:
    with pytest.raises(BadFile) as caught:
        read(given, most=most)
    return [str(fault) for fault in caught.value.faults]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_times_are_local_to_the_zone_of_the_file() -> None:
    winter, summer = read(
        whole(session(message("2024-03-09T18:30:00")), session(message("2024-03-10T18:30:00")))
    )
    assert winter.messages[0].at == utc("2024-03-09T23:30:00")
    assert summer.messages[0].at == utc("2024-03-10T22:30:00")


def test_an_hour_that_happens_twice_is_its_first_occurrence() -> None:
    [only] = read(whole(session(message("2024-11-03T01:30:00"))))
    assert only.messages[0].at == utc("2024-11-03T05:30:00")


def test_a_conversation_across_the_hour_that_happens_twice_keeps_its_order() -> None:
    times = ["2024-11-03T01:50:00", "2024-11-03T01:05:00", "2024-11-03T01:10:00"]
    [only] = read(whole(session(*map(message, times))))
    assert [said.at for said in only.messages] == [
        utc("2024-11-03T05:50:00"),
        utc("2024-11-03T06:05:00"),
        utc("2024-11-03T06:10:00"),
    ]


def test_an_hour_the_clock_skipped_is_read_as_if_it_had_not() -> None:
    [only] = read(whole(session(message("2024-03-10T02:30:00"))))
    assert only.messages[0].at == utc("2024-03-10T07:30:00")


def test_texts_are_cleaned_of_what_cannot_be_stored() -> None:
    [only] = read(whole(session(message(text="one\0 two\ud800\x07\nthree"))))
    assert only.messages[0].text == "one two\nthree"


def test_a_byte_order_mark_does_no_harm() -> None:
    raw = b"\xef\xbb\xbf" + json.dumps(whole(session(message()))).encode()
    assert parse(raw, now=NOW, most_characters=10).customer == "Ada"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format": "memberintel-transcript/2"}, "format: expected 'memberintel-transcript/1'"),
        (
            {"timezone": "Mars/Olympus"},
            "timezone: unknown; expected a name such as Europe/Berlin or America/New_York",
        ),
        (
            {"timezone": "../etc/passwd"},
            "timezone: unknown; expected a name such as Europe/Berlin or America/New_York",
        ),
        ({"sessions": []}, "sessions: expected at least one"),
        ({"sessions": {}}, "sessions: expected a list"),
        ({"sessions": ["x"]}, "sessions[0]: expected an object"),
        ({"customer": 3}, "customer: expected a text"),
        ({"colour": "blue"}, "colour: is not part of the format"),
        (
            {"sessions": [{"started_at": "2024-03-09T18:30:00", "messages": []}]},
            "sessions[0].messages: expected at least one",
        ),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], fault: str) -> None:
    assert faults(whole(session(message()), **change)) == [fault]


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"role": "system"}, "role: expected 'customer' or 'advisor'"),
        ({"at": "yesterday"}, "at: expected a local time such as 2024-03-09T18:30:00"),
        ({"at": "2024-03-09"}, "at: expected a local time such as 2024-03-09T18:30:00"),
        ({"at": 7}, "at: expected a local time such as 2024-03-09T18:30:00"),
        ({"at": "2024-02-30T10:00:00"}, "at: expected a local time such as 2024-03-09T18:30:00"),
        (
            {"at": "2024-03-09T18:40:00+01:00"},
            "at: times are local to the file's timezone: leave out the offset",
        ),
        ({"at": "0001-01-01T00:00:00"}, "at: a year from 1971 on is expected"),
        ({"at": "9999-12-31T23:59:59"}, "at: a year from 1971 on is expected"),
        ({"at": "2024-03-09T18:29:59"}, "at: is earlier than the message before it"),
        ({"at": "2025-06-01T12:00:00"}, "at: lies in the future"),
        ({"text": ""}, "text: is empty"),
        ({"text": " \0\n "}, "text: is empty"),
        ({"text": None}, "text: expected a text"),
        ({"text": "x" * 1001}, "text: has 1,001 characters; the limit is 1,000"),
    ],
)
def test_the_place_of_a_wrong_message_is_named(wrong: dict[str, Any], fault: str) -> None:
    good = session(message("2024-01-01T10:00:00"))
    bad = session(message(), {**message("2024-03-09T18:31:00"), **wrong})
    assert faults(whole(good, bad)) == [f"sessions[1].messages[1].{fault}"]


def test_a_missing_field_is_named() -> None:
    wrong = message()
    del wrong["at"]
    assert faults(whole(session(message(), wrong))) == ["sessions[0].messages[1].at: is missing"]


def test_a_session_cannot_start_after_its_first_message() -> None:
    given = whole(session(message(), started_at="2024-03-09T18:31:00"))
    assert faults(given) == ["sessions[0].messages[0].at: is earlier than the start of its session"]


def test_a_session_pasted_twice_is_found() -> None:
    assert faults(whole(session(message()), session(message()))) == [
        "sessions[1]: begins exactly like sessions[0]"
    ]


def test_no_fault_quotes_what_somebody_said() -> None:
    found = faults(whole(session({**message(text="secret words"), "role": "secret role"})))
    assert "secret" not in " ".join(found)


def test_faults_are_told_together_up_to_ten() -> None:
    assert len(faults(whole(session(*[{**message(), "text": ""} for _ in range(30)])))) == 10


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"{", "line 1, column 2: not JSON"),
        (b"", "line 1, column 1: not JSON"),
        (b"\xff\xfe", "not UTF-8 text (byte 0)"),
        (b"[" * 200_000, "not JSON: nested too deeply"),
        (b"[]", "the file: expected an object"),
        (b"null", "the file: expected an object"),
    ],
)
def test_what_is_no_such_file_is_said_to_be_none(raw: bytes, fault: str) -> None:
    with pytest.raises(BadFile) as caught:
        parse(raw, now=NOW, most_characters=10)
    assert str(caught.value).startswith(fault)
