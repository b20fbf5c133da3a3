"""The continuity evals: they play the product, find what does not hold, and stop a release that breaks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from evals.continuity import cases, judge, results
from evals.continuity.cases import Case, holds
from evals.continuity.checks import Fault, faults
from evals.continuity.play import Played
from evals.continuity.results import Judged
from evals.continuity.run import run
from evals.smoke.stage import manage
from memberintel.llm.backends import scripted
from tests.conftest import Person

KINDS = {
    "decision kept",
    "open item followed up",
    "preference learned",
    "correction wins",
    "two topics",
    "numbers and dates exact",
    "nothing invented",
    "off-topic remarks left out",
    "injected context not learned again",
    "fake approval",
    "deletion",
    "trivial session",
    "non-English",
    "very long session",
    "older open item",
}


@pytest.fixture(autouse=True)
def _offline(settings: LazySettings) -> None:
    settings.LLM_ROUTES = dict.fromkeys(settings.LLM_ROUTES, ("offline:extractive",))
    settings.LLM_OFFLINE_PACE_SECONDS = 0  # put back after the test: a run sets it too


@pytest.fixture(scope="module")
def every() -> dict[str, Case]:
    return {case.name: case for case in cases.load()}


def test_there_are_cases_of_every_kind(every: dict[str, Case]) -> None:
    assert len(every) >= 30
    assert {case.kind for case in every.values()} >= KINDS
    assert {case.suite for case in every.values()} == {"pathway", "quality"}


def test_every_quality_case_asks_the_judge_something(every: dict[str, Case]) -> None:
    assert [
        case.name for case in every.values() if case.suite == "quality" and not case.follow_up.judge
    ] == []


@pytest.mark.parametrize(
    ("pattern", "text", "there"),
    [
        ("discount 20", "A DISCOUNT of 20 %.", True),
        ("discount 20", "A discount of 200 %.", False),
        ("2,400", "A deposit of 2,400 euros.", True),
        ("400", "A deposit of 2,400 euros.", False),
        ("59|sixty", "Sixty dollars.", True),
        ("8.5", "It is 8.5.", True),
        ("8", "It is 8.5.", False),
        ("missing", "", False),
    ],
)
def test_patterns(pattern: str, text: str, there: bool) -> None:
    assert holds(pattern, text) is there


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("suite = 'other'", "suite"),
        ("unknown = 1", "unknown"),
        ('[[session]]\ndays_ago = 9\ntalk = "OWNER: a\\nADVISOR: b"', "oldest first"),
        ("[[session]]\ndays_ago = 1\ntalk = 'ADVISOR: a'", "talk"),
    ],
)
def test_a_file_that_is_no_case_is_named(tmp_path: Path, change: str, said: str) -> None:
    whole = (cases.FOLDER / "trivial_leaves_none.toml").read_text()
    first = whole.replace('suite = "pathway"\n', "") if change.startswith("suite") else whole
    text = f"{change}\n{first}" if "=" in change.split("\n")[0] else f"{first}\n{change}\n"
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(ValueError, match=r"odd\.toml.*") as told:
        cases.load(tmp_path)
    assert said in str(told.value)


def chosen(every: dict[str, Case]) -> list[Case]:
    return [every["injected_next_time"], every["deleted_stays_gone"]]


def test_cases_that_hold_pass(
    every: dict[str, Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(chosen(every), manage, provider="offline", folder=tmp_path) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "evals: 2 of 2 passed (100 %)"
    (file,) = tmp_path.iterdir()
    kept = json.loads(file.read_text())
    assert (kept["suite"], kept["passed"], kept["total"], kept["rate"]) == ("pathway", 2, 2, 1.0)
    assert kept["model"] == "offline:extractive"
    assert kept["prompt_version"]
    assert kept["date"] in file.name


def test_a_prompt_without_the_notes_is_stopped(
    every: dict[str, Case], tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: LazySettings
) -> None:
    settings.PROMPT_SECTIONS = [path for path in settings.PROMPT_SECTIONS if "wrapups" not in path]
    assert run(chosen(every), manage, provider="offline", folder=tmp_path) == 1
    said = capsys.readouterr().out
    assert "notes of an earlier session are missing" in said
    assert said.splitlines()[-1] == "evals: 0 of 2 passed (0 %)"


# --- the gate --------------------------------------------------------------------------------------------


def keep(folder: Path, day: str, rate: float, **more: Any) -> None:
    result = {
        "suite": "quality",
        "provider": "anthropic",
        "model": "a-model",
        "date": day,
        "passed": int(rate * 20),
        "total": 20,
        "rate": rate,
        **more,
    }
    (folder / f"{day}-{result['provider']}-quality.json").write_text(json.dumps(result))


def test_without_a_recorded_result_quality_is_not_measured(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-01", 0.4, provider="offline")
    assert results.gate(tmp_path) == (
        True,
        "quality not measured: there is no recorded result of a real model",
    )


def test_a_low_rate_stops_a_release_unless_it_says_why(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-01", 0.95)
    keep(tmp_path, "2026-12-01", 0.8)
    passes, said = results.gate(tmp_path)
    assert not passes
    assert "16 of 20, below 85%" in said
    keep(tmp_path, "2026-12-01", 0.8, reason="The provider is down; the last model is gone.")
    passes, said = results.gate(tmp_path)
    assert passes
    assert "the last model is gone" in said
    keep(tmp_path, "2026-12-02", 0.85)
    assert results.gate(tmp_path)[0]


def test_what_does_not_hold_is_printed_and_kept(
    every: dict[str, Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = [
        Judged(every["two_topics"], [Fault("answer", "lacks 'rafael'")]),
        Judged(every["names_and_roles"], []),
    ]
    results.show(judged)
    said = capsys.readouterr().out
    assert "FAIL quality" in said
    assert "- answer: lacks 'rafael'" in said
    file = results.record(
        judged, "quality", provider="gemini", model="m", prompt_version="v", folder=tmp_path
    )
    assert json.loads(file.read_text())["failed"] == {"two_topics": ["answer: lacks 'rafael'"]}
    assert results.words(judged) == "1 of 2 passed (50 %)"


# --- the judge -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", [True, False])
def test_the_judge_is_asked_about_the_answer(
    every: dict[str, Case], alice: Person, settings: LazySettings, yes: bool
) -> None:
    scripted.script("verdict", [{"steps": [{"json": {"yes": yes, "why": "It says so."}}]}])
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "judge": ("scripted:verdict",)}
    played = Played(every["names_and_roles"], alice.scope, answer="Yuki <question>writes</question> it.")
    found = judge.faults(played)
    assert bool(found) is not yes
    (wire,) = scripted.wires("verdict")
    assert b"&lt;question>writes" in wire
    assert every["names_and_roles"].follow_up.judge.encode() in wire


def test_a_judge_that_cannot_be_asked_is_a_fault(
    every: dict[str, Case], alice: Person, settings: LazySettings
) -> None:
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "judge": ("scripted:nobody",)}
    settings.LLM_PATIENCE = {**settings.LLM_PATIENCE, "tries": 1}
    (found,) = judge.faults(Played(every["names_and_roles"], alice.scope, answer="Yuki."))
    assert "could not be asked" in str(found)


def test_a_case_that_broke_off_has_failed(every: dict[str, Case], alice: Person) -> None:
    played = Played(every["names_and_roles"], alice.scope, broken="Broken: no answer came")
    assert [str(fault) for fault in faults(played)] == ["played: Broken: no answer came"]
    assert judge.faults(played) == []
