"""Web processes that are killed, asked to leave, or lose their readers in the middle of an answer."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from memberintel.tenancy.context import scope
from sessions import lease, log, queries
from sessions.domain import events as kinds
from sessions.domain import marks
from sessions.domain.events import Event
from sessions.models import Session
from tests.conftest import Person, make_person
from tests.faults.web import Browser, Reading, Web, Webs, webs
from tests.waiting import PATIENCE, until

WORDS = " ".join(f"word{number}" for number in range(400))
PACE_SECONDS = 0.02
SLOWLY = {"steps": [{"words": WORDS, "delay": PACE_SECONDS}]}
FIRST, REST = (" ".join(part) for part in (WORDS.split()[:75], WORDS.split()[75:150]))
KILLS = int(os.environ.get("KILLS", "8"))  # processes killed; each with a few answers running
READERS = 5
LOST_SECONDS = 2.0
SLACK_SECONDS = 1.0  # for a machine that is busy with other tests
LOST_WORDS = int(
    (LOST_SECONDS + SLACK_SECONDS) / PACE_SECONDS
)  # on one so busy that its seconds hold fewer words


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Webs]:
    with webs(tmp_path) as made:
        made.play(SLOWLY)
        yield made


def until_the_gate(made: Webs) -> dict[str, object]:
    """A play that has told the first of its words, and tells the rest once the gate is there."""
    words = [{"words": FIRST, "delay": PACE_SECONDS}, {"text": " ", "gate": str(made.gate)}]
    return {"steps": [*words, {"words": REST, "delay": PACE_SECONDS}]}


def events_of(person: Person, session: str) -> list[Event]:
    with scope(person.scope):
        return log.load(UUID(session))


def saved_text(events: list[Event]) -> str:
    return "".join(kinds.text_of(event) for event in events if event.kind == kinds.PENDING_STATE)


class Watched:
    """Somebody who reads an answer in a thread of their own."""

    def __init__(self, web: Web, number: int = 0, browser: Browser | None = None) -> None:
        self.browser = browser or Browser.of(make_person(tier="pro", name="watcher"))
        self.person, self.reading = self.browser.person, Reading()
        self.text = (
            f"Question number {number}: what should I change so that fewer members leave in month one?"
        )
        answer = self.browser.say(web, self.text)
        assert answer.status_code == 201, answer.text
        self.said = answer.json()
        self.thread = threading.Thread(
            target=self.reading.follow, args=(self.browser, web, self.said["stream"])
        )
        self.thread.start()


@pytest.mark.slow
def test_a_killed_process_loses_no_message_and_at_most_two_seconds_of_an_answer(many: Webs) -> None:
    upcoming = many.begin()
    watched: list[tuple[Watched, float]] = []
    rng = random.Random(20_260)
    for _ in range(KILLS):
        web = many.ready(upcoming)
        upcoming = many.begin()  # while this one speaks, the next one starts
        readers = [Watched(web, number) for number in range(READERS)]
        time.sleep(rng.uniform(0, 2.8))  # the moment of the crash is what varies
        web.kill()
        killed = time.monotonic()
        for reader in readers:
            reader.thread.join()
        watched += [(reader, killed) for reader in readers]
    for reader, killed in watched:
        events = events_of(reader.person, reader.said["session"])
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [kinds.text_of(event) for event in events if event.kind == kinds.USER_MESSAGE] == [reader.text]
        saved = saved_text(events)
        assert WORDS.startswith(saved)
        shown = reader.reading.saved_before(killed - LOST_SECONDS - SLACK_SECONDS)
        assert len(saved) >= min(shown, len(" ".join(reader.reading.text.split()[:-LOST_WORDS])))
    web = many.ready(upcoming)
    _the_next_answer_sees_what_was_cut_off(many, web, watched[-1][0])


def _the_next_answer_sees_what_was_cut_off(many: Webs, web: Web, reader: Watched) -> None:
    many.play({"steps": [{"text": "Going on."}]})
    until(lambda: _lapsed(reader))  # until then the killed process might be only slow
    answer = reader.browser.say(web, "Please go on.").json()
    following = Reading()
    following.follow(reader.browser, web, answer["stream"])
    assert following.end == ("done", {"outcome": "complete"})
    saved = saved_text(events_of(reader.person, reader.said["session"]))
    assert saved[:200] in many.sent()[-1]


def _lapsed(reader: Watched) -> bool:
    with scope(reader.person.scope):
        return queries.running_turn(Session.objects.get(id=reader.said["session"])) is None


def test_a_process_killed_while_a_tool_runs_leaves_a_call_without_a_result(many: Webs) -> None:
    many.play(
        {"steps": [{"text": "Let me wait. "}, {"tool": "wait", "arguments": {"seconds": 90}, "id": "t1"}]}
    )
    web = many.start()
    reader = Watched(web)
    until(lambda: reader.reading.tools)
    until(lambda: _calls(reader))  # it is in the log before it is made
    web.kill()
    reader.thread.join()
    assert _calls(reader) == [("t1", "wait", None)]
    assert saved_text(events_of(reader.person, reader.said["session"])) == "Let me wait. "
    with scope(reader.person.scope):
        lease.revoke(UUID(reader.said["session"]), UUID(reader.said["turn"]))  # as if it had lapsed
    many.play({"steps": [{"text": "Going on."}]})
    other = many.start()
    following = Reading()
    following.follow(reader.browser, other, reader.browser.say(other, "Please go on.").json()["stream"])
    assert following.end == ("done", {"outcome": "complete"})
    assert marks.NO_RESULT in many.sent()[-1]
    page = reader.browser.page(other, f"/sessions/{reader.said['session']}/")
    assert "No result came; whether it took effect is not known." in page


def _calls(reader: Watched) -> list[tuple[str, str, str | None]]:
    events = events_of(reader.person, reader.said["session"])
    return [(call["id"], call["name"], call["result"]) for event in events for call in kinds.tools_of(event)]


@pytest.mark.slow
def test_a_process_that_is_asked_to_leave_finishes_its_answers(many: Webs) -> None:
    many.play(until_the_gate(many))
    web = many.start()
    browsers = [Browser.of(make_person(tier="pro", name="watcher")) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        readers = list(pool.map(lambda browser: Watched(web, browser=browser), browsers))
    until(lambda: all(reader.reading.text for reader in readers))
    web.leave()
    many.gate.touch()  # nobody's answer had ended before
    for reader in readers:
        reader.thread.join()
    web.process.wait(timeout=PATIENCE)
    assert web.process.returncode == 0 or web.process.returncode == -15, web.log.read_text()
    other = many.start()
    for reader in readers:
        assert reader.reading.reconnects == 1
        reader.reading.follow(reader.browser, other, reader.said["stream"])
        assert reader.reading.end == ("done", {"outcome": "complete"})
        assert reader.reading.text == kinds.text_of(events_of(reader.person, reader.said["session"])[-1])


def test_a_reader_that_drops_all_the_time_misses_nothing_and_gets_nothing_twice(many: Webs) -> None:
    many.play(until_the_gate(many))
    first, second = many.start(), many.start()
    person = make_person(tier="pro", name="dropper")
    browser, reading = Browser.of(person), Reading()
    said = browser.say(first, "What should I change so that fewer members leave?").json()
    turns = 0
    while reading.end is None:
        turns += 1
        if turns > 4:
            many.gate.touch()
        until_then = time.monotonic() + 0.3
        web = (first, second)[turns % 2]  # the process that runs the turn, and one that does not

        def enough(at: float = until_then) -> bool:
            return time.monotonic() > at or (reading.text.rstrip() == FIRST and not many.gate.exists())

        reading.follow(browser, web, said["stream"], stop=enough)
    assert turns > 4
    assert reading.text == kinds.text_of(events_of(person, said["session"])[-1])


def test_two_browsers_on_two_processes_see_the_same_answer_and_either_may_stop_it(many: Webs) -> None:
    many.play(until_the_gate(many))
    first, second = many.start(), many.start()
    one = Watched(first)
    other = Reading()
    thread = threading.Thread(target=other.follow, args=(one.browser, second, one.said["stream"]))
    thread.start()
    until(lambda: one.reading.text and other.text)
    assert one.browser.say(second, "And what about prices?").status_code == 409
    stop = f"/api/v1/sessions/{one.said['session']}/turns/{one.said['turn']}/stop/"
    assert one.browser.post(second, stop).status_code == 202
    one.thread.join()
    thread.join()
    assert one.reading.end == other.end == ("done", {"outcome": "stopped"})
    assert one.reading.text == other.text == kinds.text_of(events_of(one.person, one.said["session"])[-1])


def test_the_same_message_at_once_at_two_processes_is_one_turn(many: Webs) -> None:
    first, second = many.start(), many.start()
    person = make_person(tier="pro", name="doubler")
    browser = Browser.of(person)
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda n: browser.say((first, second)[n % 2], "Once only", key="one-key-01"), range(8))
        )
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["turn"] for answer in answers}) == 1
    with scope(person.scope):
        assert Session.objects.count() == 1
