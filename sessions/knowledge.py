"""What the advisor knew in a session: from its log alone, and as it is kept now. A page, and its data for the API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from brain import knowledge
from memberintel.accounts.access import signed_in
from sessions import log, queries
from sessions.domain import events as kinds
from sessions.domain.events import Event
from sessions.views import title_of

PAGE = 40
KINDS = (kinds.CONTEXT_FROZEN, kinds.PROMPT_REFRESHED, kinds.RECALL)


@dataclass(frozen=True)
class Known:
    """Something the advisor was told, at one place of the log: a whole prompt, or what came up for one message."""

    seq: int
    at: datetime
    kind: str
    late: bool
    sections: list[knowledge.Section]


def known(session: UUID, *, after: int = 0, limit: int = PAGE) -> list[Known]:
    """What the advisor was told from event `after` on, in order, at most `limit` times."""
    events = log.load_kinds(session, KINDS, after=after, limit=limit)
    told = knowledge.sections([_named(event) for event in events])
    return [
        Known(event.seq, event.at, event.kind, bool(event.payload.get("late")), sections)
        for event, sections in zip(events, told, strict=True)
    ]


def _named(event: Event) -> list[tuple[str, str]]:
    return [(section["name"], section["digest"]) for section in event.payload.get("sections", ())]


@require_safe
@signed_in
def page(request: HttpRequest, session: UUID) -> HttpResponse:
    """What the advisor knew in this session, with where it came from."""
    row, after = queries.get_session(session), request.GET.get("after", "0")
    if row is None:
        raise Http404
    if not after.isascii() or not after.isdigit() or len(after) > 9:
        raise BadRequest("after is the number of an event")
    found = known(row.id, after=int(after), limit=PAGE + 1)
    shown = found[:PAGE]
    context = {
        "place": "sessions",
        "session": row,
        "title": title_of(row),
        "known": shown,
        "later": shown[-1].seq if len(found) > PAGE else None,
        "paged": int(after) > 0,
    }
    return render(request, "sessions/knowledge.html", context)
