"""Redis and PostgreSQL that go away in the middle of an answer, and come back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sessions.domain import events as kinds
from tests.conftest import make_person
from tests.faults.conftest import Own, migrated
from tests.faults.test_streams import Watched, events_of, saved_text
from tests.faults.web import Reading, webs
from tests.waiting import until

WORDS = " ".join(f"word{number}" for number in range(250))
SLOWLY = {"steps": [{"words": WORDS, "delay": 0.03}]}
FIRST, REST = (" ".join(part) for part in (WORDS.split()[:150], WORDS.split()[150:]))
TOOL = {"steps": [{"text": "Let me wait. "}, {"tool": "wait", "arguments": {"seconds": 1}}]}


@pytest.mark.slow
def test_redis_stops_and_starts_in_the_middle_of_answers(tmp_path: Path, own: Own) -> None:
    """The process that runs the turn serves its readers from memory; the other falls back to what is saved."""
    own.start_redis()
    with webs(tmp_path, own.variables()) as made:
        made.play(SLOWLY)
        here, elsewhere = made.start(), made.start()
        one = Watched(here)
        other = Reading()
        there = threading.Thread(target=other.follow, args=(one.browser, elsewhere, one.said["stream"]))
        there.start()
        until(lambda: one.reading.text and other.text)
        own.stop_redis()
        unaided = Watched(here, 2)
        until(lambda: unaided.reading.text)
        own.start_redis()
        for thread in (one.thread, unaided.thread, there):
            thread.join()
        after = Watched(here, 3)
        after.thread.join()
    for reading in (one.reading, other, unaided.reading, after.reading):
        assert reading.end == ("done", {"outcome": "complete"})
        assert reading.text == WORDS
    assert (one.reading.reconnects, other.reconnects) == (0, 0)
    assert kinds.text_of(events_of(one.person, one.said["session"])[-1]) == WORDS


@pytest.mark.slow
def test_postgresql_crashes_and_comes_back_in_the_middle_of_answers(tmp_path: Path, own: Own) -> None:
    with migrated(own), webs(tmp_path, own.variables()) as made:
        words = [{"words": FIRST, "delay": 0.03}, {"text": " ", "gate": str(made.gate)}]
        made.play({"steps": [*words, {"words": REST, "delay": 0.03}]})
        web = made.start()
        plain = Watched(web, 1)
        until(lambda: plain.reading.text)  # from here on the other script is the next one's
        made.play(TOOL, SLOWLY)
        using = Watched(web, 2)
        until(lambda: using.reading.tools)
        until(lambda: saved_text(events_of(plain.person, plain.said["session"])))
        own.crash_database()
        before = len(plain.reading.text)
        made.gate.touch()
        until(lambda: len(plain.reading.text) > before)  # the answer goes on meanwhile
        own.start_database()
        for watched, said in ((plain, WORDS), (using, f"Let me wait. \n\n{WORDS}")):
            watched.thread.join()
            assert watched.reading.end == ("done", {"outcome": "complete"}), web.log.read_text()[-3000:]
            events = events_of(watched.person, watched.said["session"])
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert kinds.text_of(events[1]) == watched.text
            assert kinds.text_of(events[-1]) == watched.reading.text == said
        assert [call["result"] for call in kinds.tools_of(events[-1])] == ["waited 1 seconds"]
        made.play({"steps": [{"text": "Going on."}]})
        again = Watched(web, 3)  # no request meets a connection of before
        again.thread.join()
        assert again.reading.end == ("done", {"outcome": "complete"})
        assert make_person(tier="pro").user.pk
