"""The story told: imported up to its last session, which is played live; then one more is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from evals.smoke import story
from evals.smoke.report import Report
from evals.smoke.stage import Customer, Stage, manage, poll
from evals.smoke.story import Story
from evals.smoke.visitor import Answer, Visitor
from memberintel.tenancy.context import scope
from sessions import importer
from sessions.models import Session
from wrapups.models import ClosingJob, JobKind, JobState, SessionLog

WORKER_SECONDS = 60.0
AGAIN = "Good to be back. Where did we leave off, and what was I going to do?"


@dataclass
class Told:
    """What happened: `live` is the session that was played, `next` the one opened after it."""

    answers: list[Answer] = field(default_factory=list)
    handed_over: str = ""

    @property
    def live(self) -> UUID:
        return self.answers[0].session

    @property
    def next(self) -> UUID:
        return self.answers[-1].session


def bring_in(report: Report, stage: Stage, who: Customer, told: Story) -> None:
    """Import all but the last session and wait for the worker."""
    file = stage.data / "past.json"
    told.write_past(file)
    count = len(told.past.sessions)
    first = manage("import_conversations", str(file), "--customer", who.email)
    report.check(
        first.returncode == 0 and f"{count} sessions imported" in first.stdout,
        f"{count} sessions are imported by the command",
        _last_line(first.stdout or first.stderr),
    )
    wanted = _substantive(who, told)
    poll(lambda: _written(who) >= wanted and not _queued(who), seconds=WORKER_SECONDS, stage=stage)
    _check_wrap_ups(report, who, wanted, "after the import")
    again = manage("import_conversations", str(file), "--customer", who.email)
    report.check(
        f"0 sessions imported, {count} were there already" in again.stdout,
        "the same file again adds nothing",
        _last_line(again.stdout or again.stderr),
    )


def tell(report: Report, stage: Stage, who: Customer, told: Story) -> Told:
    """Sign in, play the last session, end it, open one more and say hello in it."""
    result = Told(handed_over=newest_note(who))
    with Visitor(stage.url) as visitor:
        landed = visitor.sign_in(who)
        report.check(
            landed.status_code == 200 and landed.url.path == "/chat/",
            "the customer signs in through the form and lands in the chat",
            f"{landed.status_code} {landed.url.path}",
        )
        result.answers += [visitor.say(text) for text in told.said_live]
        _check_answers(report, result.answers)
        report.check(
            _spoken(result.handed_over) in _spoken(result.answers[0].text),
            "the first answer uses the note handed over",
            _short(result.handed_over),
        )
        ended = visitor.post(f"/api/v1/sessions/{result.live}/end/", {})
        report.check(ended.status_code == 200 and ended.json() == {"ended": True}, "the session is ended")
        opened = visitor.post("/api/v1/sessions/", {})
        report.check(opened.status_code == 201, "another session is opened at once", opened.status_code)
        result.answers.append(visitor.say(AGAIN))
        report.check(
            str(result.next) == opened.json().get("session") and result.next != result.live,
            "the next message goes there",
        )
    wanted = _substantive(who, told) | _if_substantive(told, result)
    poll(lambda: _written(who) >= wanted and not _queued(who), seconds=WORKER_SECONDS, stage=stage)
    _check_wrap_ups(report, who, wanted, "after the end")
    report.check(
        bool(newest_note(who)) and _spoken(newest_note(who)) in _spoken(result.answers[-1].text),
        "the first answer of the new session uses the note of the one just ended",
        _short(newest_note(who)),
    )
    return result


def newest_note(who: Customer) -> str:
    """The note for next time of the newest wrap-up."""
    with scope(who.scope):
        row = SessionLog.objects.order_by("session_last_activity_at", "session_id").last()
        return row.next_session_note if row else ""


# --- what must be there ----------------------------------------------------------------------------------


def _substantive(who: Customer, told: Story) -> set[UUID]:
    """Ids of the imported sessions that must have notes, worked out from the file alone."""
    with scope(who.scope):
        return {
            importer.session_id(session) for session in told.past.sessions if story.is_substantive(session)
        }


def _if_substantive(told: Story, result: Told) -> set[UUID]:
    return {result.live} if story.is_substantive(told.live) else set()


def _written(who: Customer) -> set[UUID]:
    with scope(who.scope):
        return set(SessionLog.objects.values_list("session_id", flat=True))


def _queued(who: Customer) -> bool:
    with scope(who.scope):
        return ClosingJob.objects.filter(state=JobState.QUEUED).exists()


def _check_wrap_ups(report: Report, who: Customer, wanted: set[UUID], when: str) -> None:
    with scope(who.scope):
        rows = list(SessionLog.objects.all())
        states = list(ClosingJob.objects.filter(kind=JobKind.WRAP_UP).values_list("session_id", "state"))
        closed = Session.objects.filter(closed_at__isnull=False).count()
    report.check(
        sorted(row.session_id for row in rows) == sorted(wanted),
        f"one wrap-up per substantive session {when}",
        f"{len(rows)} of {len(wanted)}",
    )
    done = {session for session, state in states if state == JobState.DONE}
    rest = {state for session, state in states if session not in wanted}
    report.check(
        done == wanted and rest <= {JobState.TRIVIAL} and len(states) == closed,
        f"every closed session has its state {when}",
        f"{len(done)} done, {closed - len(done)} {'/'.join(sorted(rest)) or 'others'}",
    )
    longest = max((row.word_count for row in rows), default=0)
    report.check(0 < longest <= 400, f"no wrap-up is over 400 words {when}", f"longest {longest}")


def _check_answers(report: Report, answers: Sequence[Answer]) -> None:
    bad = [f"{answer.end}: {answer.detail}" for answer in answers if answer.end != "complete"]
    report.check(
        not bad and all(answer.text.strip() for answer in answers),
        "every message of the last session is answered over the stream",
        bad[0] if bad else f"{len(answers)} answers",
    )
    report.check(
        len({answer.session for answer in answers}) == 1, "all of them in one session", answers[0].session
    )


def _spoken(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    return f"“{text[:70]}…”" if len(text) > 70 else f"“{text}”"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no output"
