"""What a long conversation meets: a connection that breaks, a model's window, and words to be found again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evals.loopback.scenario import Play, Scenario
from evals.smoke.report import Report
from evals.smoke.stage import Customer, Stage
from evals.smoke.story import Story
from evals.smoke.visitor import Answer, Visitor
from memberintel.tenancy.context import scope
from sessions import importer, log, queries
from sessions.domain import events as kinds
from sessions.domain.events import Event

MESSAGES = 6
LINE = "In week {week} of group {group} we counted the members who posted, and asked the quiet ones what kept them."
SESSION = 3
WORD = re.compile(r"[^\W\d_]{7,}")


def check(
    report: Report,
    stage: Stage,
    owner: Customer,
    talker: Customer,
    told: Story,
    scenario: Scenario | None,
) -> list[str]:
    """Every check of this module; what was said for it. `talker` is a customer who has not spoken yet."""
    said = [_message(number) for number in range(MESSAGES)]
    if scenario is not None:
        scenario.play([Play(pace=0.05), Play()])  # slowly at first, so that there is a middle to break off in
    with Visitor(stage.url) as visitor:
        visitor.sign_in(talker)
        broken = visitor.say(said[0], breaking_off=True)
        answers = [visitor.say(text) for text in said[1:]]
    with scope(talker.scope):
        events = log.load(broken.session)
        texts = [line.text for line in queries.transcript_lines(broken.session)]
    _check_broken(report, broken, events)
    _check_compacted(report, [broken, *answers], events)
    with Visitor(stage.url) as visitor:
        visitor.sign_in(owner)
        _check_found(report, visitor, owner, told)
    return texts


def _check_broken(report: Report, broken: Answer, events: Sequence[Event]) -> None:
    kept = [kinds.text_of(event) for event in events if event.kind == kinds.ASSISTANT_TURN]
    report.check(
        broken.broke_at is not None
        and 0 < broken.broke_at < len(broken.text)
        and broken.end == "complete"
        and kept[:1] == [broken.text],
        "a connection that breaks in the middle of an answer is resumed without a lost or doubled character",
        f"broken after {broken.broke_at} of {len(broken.text)} characters",
    )


def _check_compacted(report: Report, answers: Sequence[Answer], events: Sequence[Event]) -> None:
    summaries = [event for event in events if event.kind == kinds.COMPACTION_APPLIED]
    bad = [f"{answer.end}: {answer.detail}" for answer in answers if answer.end != "complete"]
    report.check(
        not bad and bool(summaries) and all(kinds.text_of(event, "summary").strip() for event in summaries),
        "a conversation that outgrows the window is summarised and goes on",
        bad[0] if bad else f"{len(summaries)} summaries in {len(events)} events",
    )


def _check_found(report: Report, visitor: Visitor, owner: Customer, told: Story) -> None:
    """The rarest long word that was said in the third session leads there."""
    third = told.past.sessions[SESSION - 1]
    everywhere = " ".join(told.texts()).lower()
    words = {word.lower() for said in third.messages for word in WORD.findall(said.text)}
    word = min(sorted(words), key=everywhere.count)
    hits = visitor.get(f"/api/v1/search/?q={word}").json()
    found = {hit["session"] for hit in hits["items"]}
    with scope(owner.scope):
        wanted = str(importer.session_id(third))
    report.check(
        wanted in found,
        f"a word of session {SESSION} is found by search",
        f"“{word}” in {len(found)} of the sessions",
    )


def _message(number: int) -> str:
    lines = (LINE.format(week=week, group=number + 1) for week in range(1, 200))
    return "\n".join((*lines, "What would you look at first?"))
