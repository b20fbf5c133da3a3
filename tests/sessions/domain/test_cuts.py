"""Pages of a log: every event on exactly one of them, no turn cut in two, and no page much longer than asked for."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from sessions.domain import cuts
from sessions.domain import events as kinds
from sessions.domain.cuts import Mark, Span

# A turn: whether it has a question (imported answers may have none), its pending states, and what stands after it.
TURNS = st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 2)), max_size=25)
SIZES = st.integers(1, 40)


def log_of(turns: list[tuple[bool, int, int]]) -> list[Mark]:
    found = [Mark(1, kinds.SESSION_OPENED, None)]

    def add(kind: str, turn: UUID | None) -> None:
        found.append(Mark(len(found) + 1, kind, turn))

    for number, (asked, pending, beside) in enumerate(turns, 1):
        turn = UUID(int=number)
        if asked:
            add(kinds.USER_MESSAGE, turn)
            for _ in range(pending):
                add(kinds.PENDING_STATE, turn)
        add(kinds.ASSISTANT_TURN, turn)
        for _ in range(beside):
            add(kinds.COMPACTION_APPLIED, None)
    return found


class Read:
    """The marks of a log, and how many were read of it."""

    def __init__(self, log: list[Mark]) -> None:
        self.log, self.most = log, 0

    def __call__(self, first: int, last: int) -> list[Mark]:
        assert first >= 1
        found = self.log[first - 1 : last]
        self.most = max(self.most, len(found))
        return found


def whole(log: list[Mark], span: Span) -> bool:
    """Whether no turn has events inside and outside."""
    inside = {mark.turn for mark in log[span.first - 1 : span.last] if mark.turn}
    outside = {mark.turn for mark in (*log[: span.first - 1], *log[span.last :]) if mark.turn}
    return not inside & outside


@given(TURNS, SIZES)
def test_going_forward_shows_each_event_once(turns: list[tuple[bool, int, int]], size: int) -> None:
    log = log_of(turns)
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        span = cuts.after(Read(log), end=len(log), seq=after, size=size)
        assert whole(log, span)
        assert span.last >= span.first
        seen += range(span.first, span.last + 1)
        after = span.later
    assert seen == list(range(1, len(log) + 1))


@given(TURNS, SIZES)
def test_going_back_shows_each_event_once(turns: list[tuple[bool, int, int]], size: int) -> None:
    log = log_of(turns)
    span = cuts.newest(Read(log), end=len(log), size=size)
    seen = list(range(span.first, span.last + 1))
    while span.earlier is not None:
        span = cuts.before(Read(log), end=len(log), seq=span.earlier, size=size)
        assert whole(log, span)
        assert span.last >= span.first
        seen = [*range(span.first, span.last + 1), *seen]
    assert seen == list(range(1, len(log) + 1))


@given(TURNS, SIZES, st.integers(-3, 900), st.integers(1, 900))
def test_any_number_leads_to_whole_turns(
    turns: list[tuple[bool, int, int]], size: int, anything: int, wanted: int
) -> None:
    log = log_of(turns)
    end = len(log)
    for span in (
        cuts.before(Read(log), end=end, seq=max(anything, 1), size=size),
        cuts.after(Read(log), end=end, seq=anything, size=size),
        cuts.around(Read(log), end=end, seq=wanted, size=size),
    ):
        assert whole(log, span)
    assert span.first <= min(wanted, end) <= span.last


@given(TURNS, SIZES)
def test_what_is_read_follows_the_page_and_not_the_log(turns: list[tuple[bool, int, int]], size: int) -> None:
    log = log_of(turns)
    longest = 40  # events from the beginning of one turn to that of the next, at most
    end = len(log)
    for place in ("newest", "after", "around"):
        read = Read(log)
        if place == "newest":
            span = cuts.newest(read, end=end, size=size)
        elif place == "after":
            span = cuts.after(read, end=end, seq=0, size=size)
        else:
            span = cuts.around(read, end=end, seq=end // 2, size=size)
        assert read.most <= 4 * 4 * (size + longest)
        assert span.last - span.first < 4 * 4 * (size + longest)
