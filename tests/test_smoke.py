"""The smoke run's own instruments: they find what they look for, and count what fails."""

from __future__ import annotations

import base64

import pytest

from evals.smoke import leaks, story
from evals.smoke.report import Report
from wrapups.demo.history import CONVERSATION

SAID = 'We lost "eleven" members in the last month\nand nobody had answered their questions.'


@pytest.mark.parametrize(
    "held",
    [
        SAID.encode(),
        b"COPY events FROM stdin;\n1\t\\\\x00ff" + SAID.encode().hex().encode() + b"\n",
        b'"LPUSH" "default" "{\\"body\\": \\"'
        + base64.b64encode(b"[[7], " + SAID.encode() + b"]")
        + b'\\"}"',
    ],
    ids=["plain", "hex", "base64"],
)
def test_a_text_that_leaked_is_found(held: bytes) -> None:
    report = Report()
    needles = sorted(leaks.needles(SAID))
    leaks.check_none(report, "it", leaks.unpacked(held), needles)
    assert len(needles) == 2
    assert report.failed == ["no message text is in it"]


def test_what_holds_none_of_it_passes() -> None:
    report = Report()
    leaks.check_none(report, "it", leaks.unpacked(b"sealed \\x0011223344556677"), sorted(leaks.needles(SAID)))
    assert report.passed == 1


def test_the_last_line_is_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.check(True, "one")
    assert report.finish() == 0
    report.check(False, "two", "because")
    assert report.finish() == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok   one",
        "smoke: 1 checks passed",
        "FAIL two (because)",
        "smoke: 1 of 2 checks failed",
    ]


def test_the_story_told_without_a_file_is_the_demos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMBERINTEL_SMOKE_DATA", str(CONVERSATION))
    told = story.load()
    assert [story.is_substantive(session) for session in told.past.sessions] == [True, True, True, False]
    assert story.is_substantive(told.live)
    assert len(told.said_live) == 4
