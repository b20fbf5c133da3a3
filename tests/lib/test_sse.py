from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.lib.sse import Reader, ServerEvent, comment, encode


def test_an_event_is_four_lines() -> None:
    assert encode("text", {"t": "a\nb"}, "7-0") == b'id: 7-0\nevent: text\ndata: {"t":"a\\nb"}\n\n'
    assert encode("done", {}) == b"event: done\ndata: {}\n\n"


def test_a_comment_is_ignored_by_readers() -> None:
    reader = Reader()
    assert comment() == b":\n\n"
    assert reader.feed(comment("alive")) == []
    assert reader.comments == 1


@pytest.mark.parametrize(("event", "id"), [("a\nb", None), ("a", "1\r2"), ("a", "\0")])
def test_a_line_break_in_a_name_or_id_is_refused(event: str, id: str | None) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode(event, {}, id)


def test_an_unfinished_event_is_not_given_out() -> None:
    reader = Reader()
    assert reader.feed(b"event: text\ndata: 1\n") == []
    assert reader.feed(b"\n") == [ServerEvent("text", "1", None)]


def test_several_data_lines_join_and_the_last_id_stays() -> None:
    reader = Reader()
    events = reader.feed(b"id: 1\ndata: a\ndata: b\n\ndata: c\n\nid: 2\n\n")
    assert events == [ServerEvent("message", "a\nb", "1"), ServerEvent("message", "c", "1")]
    assert reader.last_id == "2"


payloads = st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers() | st.none(), max_size=4)


@given(
    st.lists(st.tuples(st.sampled_from(["text", "done", "error"]), payloads), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(min_value=1, max_value=7),
)
def test_what_was_written_is_read_back_however_it_is_cut(
    sent: list[tuple[str, dict[str, object]]], line_end: str, size: int
) -> None:
    wire = b"".join(encode(name, data, str(n)) for n, (name, data) in enumerate(sent))
    wire = wire.replace(b"\n", line_end.encode())
    reader = Reader()
    read = [event for at in range(0, len(wire), size) for event in reader.feed(wire[at : at + size])]
    assert [(event.event, event.json(), event.id) for event in read] == [
        (name, data, str(n)) for n, (name, data) in enumerate(sent)
    ]
