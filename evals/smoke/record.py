"""What the log says afterwards: numbers without a gap, what was streamed, what was sent to the model."""

from __future__ import annotations

import hashlib
import html
import itertools
import re
from collections.abc import Collection, Sequence
from uuid import UUID

from evals.smoke.play import Told
from evals.smoke.report import Report
from evals.smoke.stage import Customer
from memberintel.llm.types import Prompt
from memberintel.tenancy.context import scope
from memberintel.usage.models import LedgerEntry
from sessions import log, queries
from sessions.domain import events as kinds
from sessions.domain import projection
from sessions.domain.events import Event
from sessions.models import Session, SessionEvent
from wrapups import queries as wrapups
from wrapups.domain.render import Notes, entry_body
from wrapups.models import SessionLog

SECTION = re.compile(r'<section name="wrap_ups"[^>]*>\n(.*)\n</section>', re.DOTALL)
ENTRY = re.compile(r'<entry label="([^"]*)">\n(.*?)\n</entry>', re.DOTALL)
INJECTED = 3


def check(report: Report, who: Customer, told: Told) -> None:
    """Every check of this module, in the customer's scope."""
    with scope(who.scope):
        _check_numbers(report)
        _check_streamed(report, told)
        _check_frozen(report, told)
        _check_sent(report, told)


def _check_numbers(report: Report) -> None:
    held: dict[UUID, list[int]] = {}
    for session, seq in SessionEvent.objects.order_by("session_id", "seq").values_list("session_id", "seq"):
        held.setdefault(session, []).append(seq)
    wrong = [
        str(row.id) for row in Session.objects.all() if held.get(row.id) != list(range(1, row.last_seq + 1))
    ]
    events = sum(map(len, held.values()))
    report.check(
        not wrong and len(held) > 1,
        "sequence numbers are 1, 2, 3, … without a gap in every session",
        wrong[0] if wrong else f"{events} events in {len(held)} sessions",
    )


def _check_streamed(report: Report, told: Told) -> None:
    kept = {
        event.turn: kinds.text_of(event)
        for session in (told.live, told.next)
        for event in log.load(session)
        if event.kind == kinds.ASSISTANT_TURN
    }
    differ = [answer.turn for answer in told.answers if kept.get(answer.turn) != answer.text]
    report.check(
        not differ and len(kept) == len(told.answers),
        "what was streamed is what is kept, character by character",
        f"{sum(map(len, kept.values()))} characters",
    )


def _check_frozen(report: Report, told: Told) -> None:
    """The new session's prompt holds the last wrap-ups and nothing else of the kind, newest last."""
    frozen = [event for event in log.load(told.next) if event.kind == kinds.CONTEXT_FROZEN]
    sections = kinds.sections_of(frozen[0]) if frozen else []
    names = [section["name"] for section in sections]
    report.check(
        names == ["base", "soul", "bible", "wrap_ups"],
        "the prompt is frozen once, its sections in their order",
        ", ".join(names),
    )
    found = SECTION.search(next((str(each["text"]) for each in sections if each["name"] == "wrap_ups"), ""))
    entries = [
        (html.unescape(label), html.unescape(body))
        for label, body in ENTRY.findall(found.group(1) if found else "")
    ]
    last = list(SessionLog.objects.order_by("session_last_activity_at", "session_id"))[-INJECTED:]
    items = wrapups.open_items_of(wrap_ups={row.id for row in last})
    settled = {item.id for item in items if item.status != "open"}
    report.check(
        [body for _, body in entries] == [_body(row, settled) for row in last]
        and last[-1].session_id == told.live,
        f"it holds exactly the last {INJECTED} wrap-ups, newest last",
        "; ".join(label for label, _ in entries),
    )


def _body(row: SessionLog, settled: Collection[UUID]) -> str:
    notes = Notes(
        summary=row.summary,
        decisions=[item["text"] for item in row.decisions],
        open_items=[item["text"] for item in row.open_items if UUID(item["id"]) not in settled],
        new_context=[item["text"] for item in row.new_context],
        next_session_note=row.next_session_note,
    )
    return entry_body(notes, by_person=row.edited_at is not None)


def _check_sent(report: Report, told: Told) -> None:
    """The requests rebuilt from the log are what went out, and each begins with the one before it."""
    sent = {
        turn: (digest, size)
        for turn, digest, size in LedgerEntry.objects.filter(
            purpose="chat", session__in=[told.live, told.next]
        ).values_list("turn", "request_digest", "request_bytes")
    }
    requests = [(session, *request) for session in (told.live, told.next) for request in _requests(session)]
    foreign = [
        turn for _, turn, wire in requests if sent.get(turn) != (hashlib.sha256(wire).hexdigest(), len(wire))
    ]
    report.check(
        not foreign and len(requests) == len(told.answers) == len(sent),
        "each request, rebuilt from the log, is byte for byte what the ledger says was sent",
        f"{len(requests)} requests, {sum(len(wire) for _, _, wire in requests):,} bytes",
    )
    live = [wire for session, _, wire in requests if session == told.live]
    pairs = list(itertools.pairwise(live))
    report.check(
        bool(pairs) and all(after.startswith(before) and after != before for before, after in pairs),
        "each turn's request begins with the whole request of the turn before",
        f"{len(pairs)} pairs",
    )


def _requests(session: UUID) -> list[tuple[UUID | None, bytes]]:
    """(turn, bytes of its first request) of every turn of the session, in order."""
    events = log.load(session)
    return [
        (event.turn, _request(events, event).wire()) for event in events if event.kind == kinds.USER_MESSAGE
    ]


def _request(events: Sequence[Event], message: Event) -> Prompt:
    """What was known when the turn's answer began: the log before the first word of it."""
    answer = next(
        event.seq
        for event in events
        if event.turn == message.turn and event.kind in (kinds.PENDING_STATE, kinds.ASSISTANT_TURN)
    )
    return projection.provider_prompt([event for event in events if event.seq < answer])


def texts(who: Customer) -> list[str]:
    """Everything anybody said or noted, opened, for the search in what must not hold it."""
    with scope(who.scope):
        said = [line.text for row in Session.objects.all() for line in queries.transcript_lines(row.id)]
        titles = [row.title for row in Session.objects.all() if row.title]
        rows = list(SessionLog.objects.all())
        notes = [text for row in rows for text in (row.summary, row.next_session_note)]
        items = [item["text"] for row in rows for item in (*row.decisions, *row.open_items, *row.new_context)]
    return [*said, *titles, *notes, *items]
