"""Providers that fail in every way they know, through their own SDKs, in web processes of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evals.loopback.scenario import End, Play
from evals.loopback.server import Server, running
from sessions.domain import events as kinds
from sessions.domain import turn_memory
from tests.conftest import make_person
from tests.faults.test_streams import events_of, saved_text
from tests.faults.web import Browser, Reading, Web, Webs, webs

QUESTION = "What should I change so that fewer members leave in month one?"
HALF = ("Look at ", "the first ", "week ")
ROUTES = {"anthropic": "anthropic:claude-opus-5-5", "gemini": "gemini:gemini-2.5-flash"}


@dataclass(frozen=True)
class Stage:
    """A web process whose model is a server that does as it is told."""

    server: Server
    made: Webs
    web: Web

    def ask(self, *plays: Play, browser: Browser | None = None) -> tuple[Browser, dict[str, Any], Reading]:
        """Somebody asks, and reads to the end."""
        self.server.scenario.play(plays)
        browser = browser or Browser.of(make_person(tier="pro", name="asker"))
        answer = browser.say(self.web, QUESTION)
        assert answer.status_code == 201, answer.text
        said, reading = answer.json(), Reading()
        reading.follow(browser, self.web, said["stream"])
        return browser, said, reading


@pytest.fixture(scope="module", params=ROUTES)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One process for all of a provider's faults."""
    folder: Path = tmp_path_factory.mktemp("faults")
    with running() as server:
        keys = server.anthropic() if request.param == "anthropic" else server.vertex()
        others = {"LLM_ROUTE_TITLE": "offline:extractive", "LLM_ROUTE_DISTILL": "offline:extractive"}
        others["MEMBERINTEL_FAULTS_SILENCE"] = "10"  # more than a busy machine takes to begin
        with webs(folder, {**os.environ, **keys, **others}, route=ROUTES[request.param]) as made:
            yield Stage(server, made, made.start())


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        ("drop", 500, "unavailable"),
        ("stall", 500, "timed_out"),
        ("silence", 500, "unavailable"),
        ("corrupt", 500, "unavailable"),
        ("error", 529, "overloaded"),
        ("refusal", 500, "refused"),
    ],
)
def test_an_answer_that_breaks_off_is_kept_and_can_be_tried_again(
    stage: Stage, end: End, status: int, code: str
) -> None:
    if code == "overloaded" and "gemini" in stage.made.route:
        status = 503
    browser, said, reading = stage.ask(Play(HALF, end=end, status=status))
    assert reading.end is not None
    name, told = reading.end
    assert (name, told["code"], told["kept"]) == ("error", code, True)
    assert len(told["message"]) > 20
    events = events_of(browser.person, said["session"])
    assert kinds.text_of(events[1]) == QUESTION
    assert saved_text(events) == reading.text == "".join(HALF)
    assert (events[-1].kind, events[-1].payload["code"]) == (kinds.TURN_FAILED, code)
    if not told["retryable"]:
        return
    stage.server.scenario.play([Play(("The whole ", "answer."))])
    retry = f"/api/v1/sessions/{said['session']}/turns/{said['turn']}/retry/"
    again = browser.post(stage.web, retry, {"attempt": 1})
    assert again.status_code in (200, 201, 202), again.text
    following = Reading()
    following.follow(browser, stage.web, again.json()["stream"])
    assert following.end == ("done", {"outcome": "complete"})
    assert kinds.text_of(events_of(browser.person, said["session"])[-1]) == "The whole answer."


def test_a_failure_before_the_first_word_is_made_good_by_itself(stage: Stage) -> None:
    _, _, reading = stage.ask(Play(end="error", status=503), Play(("At the ", "second try.")))
    assert reading.end == ("done", {"outcome": "complete"})
    assert reading.text == "At the second try."


def test_calls_that_cannot_be_made_are_told_to_the_model_and_shown_to_the_reader(stage: Stage) -> None:
    calls = (
        ("toolu_1", "search_sessions", json.dumps({"question": "churn"})),
        ("toolu_2", "wait", json.dumps({"seconds": -1})),
        ("toolu_3", "drop_everything", "{}"),
        ("toolu_4", "wait", json.dumps({"seconds": 0})),
    )
    browser, said, reading = stage.ask(Play((), (), calls), Play(("I could not ", "look.")))
    assert reading.end == ("done", {"outcome": "complete"})
    answer = events_of(browser.person, said["session"])[-1]
    failures = turn_memory.of_content(answer.content).failures
    assert [failure.tool for failure in failures] == ["search_sessions", "wait", "drop_everything"]
    assert "query: Field required" in failures[0].error
    assert "seconds: Input should be greater than or equal to 0" in failures[1].error
    ended = [data for data in reading.tools if "result" in data]
    assert sorted((data["name"], data["error"]) for data in ended) == [
        ("drop_everything", True), ("search_sessions", True), ("wait", False), ("wait", True),
    ]  # fmt: skip
    page = browser.page(stage.web, f"/sessions/{said['session']}/")
    assert "drop everything" in page
    assert "query: Field required" in page


def test_an_error_of_300_kb_from_a_tool_is_cut_where_a_reader_sees_a_character_end(stage: Stage) -> None:
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    shout = ("toolu_1", "shout", json.dumps({"text": f"x{family}{family}", "times": 30_000}))
    browser, said, reading = stage.ask(Play((), (), (shout,)), Play(("That was ", "loud.")))
    assert reading.end == ("done", {"outcome": "complete"}), reading.end
    answer = events_of(browser.person, said["session"])[-1]
    [call] = kinds.tools_of(answer)
    kept = str(call["result"])
    assert len(kept) < 60_000
    assert kept.endswith("…")
    assert kept.replace(family, "").strip("x…") == "too_loud: "
    assert [failure.tool for failure in turn_memory.of_content(answer.content).failures] == ["shout"]
    assert "too_loud" in browser.page(stage.web, f"/sessions/{said['session']}/")


def test_arguments_that_are_no_json_end_in_an_error_a_person_can_act_on(stage: Stage) -> None:
    _, _, reading = stage.ask(Play(HALF, end="malformed"))
    assert reading.end is not None
    assert (reading.end[0], reading.end[1]["code"]) == ("error", "invalid_output")
