"""What loading the context of a compacted session costs as its log grows: it follows the live part."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from brain.actions import store_parts
from brain.domain.prompt import RenderedPart
from evals.performance.log import customer, session_of
from evals.performance.results import Figure, alternate, at_most, plain
from memberintel.tenancy.context import Scope, scope
from sessions import log
from sessions.domain import events as kinds
from sessions.domain import projection
from sessions.domain.weights import part_weights, weigh
from sessions.models import Session

LIVE = 60  # events word for word after the summary
ROUNDS = 200
BASE = "You advise the owner of a membership site. " * 60
SUMMARY = "They decided to raise the price to 49 from 1 May and to write to all 412 members. " * 40


def figures() -> Iterator[Figure]:
    """Loading and weighing the context after a compaction, in a young log and in an old one."""
    who = customer()
    with scope(who):
        young, old = _compacted(who, 1_000), _compacted(who, 100_000)
        early, late = alternate(lambda: _context(young), lambda: _context(old), ROUNDS)
    yield plain("load the context of a compacted session, 60 live events", early, "ms")
    yield at_most("the same at 100,000 events in the log, against 1,000", late / early, 1.2, "x")


def _compacted(who: Scope, events: int) -> UUID:
    session = session_of(who, events)
    Session.objects.filter(id=session).update(closed_at=None, close_reason=None, imported=True)
    digest = store_parts([RenderedPart("base", BASE, "bench", None)])[0]
    compaction = kinds.compaction_applied(
        replaces_through_seq=events - LIVE,
        summary=SUMMARY,
        method="model",
        tokens_before=120_000,
        tokens_after=9_000,
        tokens=900,
    )
    sections = part_weights([("base", digest, BASE)])
    refreshed = kinds.prompt_refreshed(sections=sections)
    log.append_compaction(session, [compaction, refreshed], expecting=None)
    return session


def _context(session: UUID) -> object:
    events = log.load_live(session)
    if not LIVE < len(events) < LIVE + 4:
        raise RuntimeError(f"{len(events)} events were loaded")
    weigh(events)
    return projection.provider_prompt(events)
