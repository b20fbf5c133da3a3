"""Summaries that fail, a row that does not open, and texts no text may hold, on a real web process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memberintel.dashboard import _unopened
from memberintel.embedded import superuser_url
from memberintel.lib import clock
from sessions import compactor
from sessions.domain import events as kinds
from tests.conftest import make_person
from tests.faults.test_streams import events_of
from tests.faults.web import Browser, Reading, Web, Webs, webs

LONG = "Members leave after the third week, and I wonder what it is about the third week. " * 24
ANSWER: dict[str, Any] = {"steps": [{"text": "Ask three of those who left, then change one thing."}]}
BAD: dict[str, dict[str, Any]] = {
    "hangs": {"steps": [{"text": "Alice"}, {"stall": True}]},
    "returns nothing": {"steps": [{"text": " "}]},
    "returns more than it got": {"steps": [{"text": LONG * 8}]},
}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Webs, Web]]:
    """A web process whose model reads little at once; see `settings`."""
    variables = {**os.environ, "LLM_ROUTE_COMPACT": "scripted:compact"}
    with webs(tmp_path_factory.mktemp("odd"), variables, route="scripted:narrow") as made:
        yield made, made.start()


def say(web: Web, browser: Browser, text: str) -> tuple[dict[str, Any], Reading]:
    """Say it, and hear the answer to its end."""
    answer = browser.say(web, text)
    assert answer.status_code == 201, answer.text
    said, reading = answer.json(), Reading()
    reading.follow(browser, web, said["stream"])
    return said, reading


@pytest.mark.parametrize("how", BAD)
def test_a_conversation_outgrows_its_window_whatever_the_summariser_does(
    narrow: tuple[Webs, Web], how: str
) -> None:
    made, web = narrow
    made.play(narrow=[ANSWER], compact=[BAD[how]])
    browser = Browser.of(make_person(tier="pro", name="talker"))
    notices: list[str] = []
    for number in range(9):
        said, reading = say(web, browser, f"Message {number}. {LONG}")
        assert reading.end == ("done", {"outcome": "complete"}), reading.end
        notices += reading.notices
    assert compactor.PICKED in notices
    events = events_of(browser.person, said["session"])
    made_without = [event.payload["method"] for event in events if event.kind == kinds.COMPACTION_APPLIED]
    assert set(made_without) == {"extractive"}
    kept = [kinds.text_of(event) for event in events if event.kind == kinds.USER_MESSAGE]
    assert kept == [f"Message {number}. {LONG}" for number in range(9)]
    assert "Message 8." in made.sent("narrow")[-1]


def test_a_row_sealed_with_another_key_is_shown_as_such_and_rings_for_staff(narrow: tuple[Webs, Web]) -> None:
    made, web = narrow
    made.play(narrow=[ANSWER])
    browser, stranger = (Browser.of(make_person(tier="pro", name=name)) for name in ("reader", "stranger"))
    for text in ("The first thing", "The second thing", "The third thing"):
        said, _ = say(web, browser, text)
    foreign, _ = say(web, stranger, "Something else")
    damaged = [
        event for event in events_of(browser.person, said["session"]) if event.kind == kinds.USER_MESSAGE
    ][1]
    _put_in_its_place(foreign["session"], said["session"], damaged.seq)
    page = browser.page(web, f"/sessions/{said['session']}/")
    assert "cannot be opened" in page
    assert "The second thing" not in page
    assert "The first thing" in page
    assert "The third thing" in page
    _, reading = say(web, browser, "And on we go")
    assert reading.end == ("done", {"outcome": "complete"}), reading.end
    sign = _unopened(clock.now())
    assert sign.state == "bad"
    assert f"session_events.sealed of {damaged.id}" in sign.detail


def _put_in_its_place(source: str, target: str, seq: int) -> None:
    """Let an event hold what another customer's key sealed; as superuser, since nobody else may change a log."""
    database = os.environ["DATABASE_URL_WEB"].rsplit("/", 1)[-1].partition("?")[0]
    address = superuser_url(Path(os.environ["MEMBERINTEL_TEST_DATA"]), database)
    with psycopg.connect(address) as connection:
        connection.execute("ALTER TABLE session_events DISABLE TRIGGER append_only")
        connection.execute(
            "UPDATE session_events SET sealed = (SELECT sealed FROM session_events WHERE session_id = %s AND seq = 2)"
            " WHERE session_id = %s AND seq = %s",
            (source, target, seq),
        )
        connection.execute("ALTER TABLE session_events ENABLE ALWAYS TRIGGER append_only")


@pytest.mark.parametrize("bad", ["\\u0000", "\\ud83d", "\\udc4d", "\\u0007"])
def test_what_no_text_may_hold_is_taken_out_of_a_message_and_the_rest_is_kept(
    narrow: tuple[Webs, Web], bad: str
) -> None:
    made, web = narrow
    made.play(narrow=[{"steps": [{"text": f"Fine{json.loads(f'"{bad}"')} with me."}]}])
    browser = Browser.of(make_person(tier="pro", name="odd"))
    body = f'{{"text": "be{bad}fore", "client_key": "key-{bad.strip("\\")}-1"}}'
    with browser.client(web) as client:
        answer = client.post("/api/v1/messages/", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    reading = Reading()
    reading.follow(browser, web, answer.json()["stream"])
    assert reading.end == ("done", {"outcome": "complete"}), reading.end
    events = events_of(browser.person, answer.json()["session"])
    assert kinds.text_of(events[1]) == "before"
    page = browser.page(web, f"/sessions/{answer.json()['session']}/")
    assert "before" in page
    assert "with me." in page
