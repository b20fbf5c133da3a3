"""The pages of the journal: the last days, one day, and the customer's own words for a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from memberintel.accounts.access import signed_in
from memberintel.lib import clock, moments
from wrapups.domain.journal import MOOD_WORDS, Day, Entry, local_day, time_range
from wrapups.journal import actions, queries
from wrapups.journal.plot import plot
from wrapups.models import JobState

PAGE = 10  # days
PLOTTED = 30  # days

# Why a session has no passage yet, by the state of the work owed for it.
MISSING = {
    JobState.QUEUED: "This passage is being written. It takes a moment.",
    JobState.FAILED: "Writing this passage did not work. It is tried again once a day; the conversation is kept.",
    JobState.UNFUNDED: "This month's journal entries are used up, so nothing was written here.",
}


@dataclass(frozen=True)
class Told:
    """An entry as the page shows it."""

    entry: Entry
    when: str
    mood: str
    missing: str


@dataclass(frozen=True)
class ToldDay:
    """A day as the page shows it."""

    day: date
    entries: tuple[Told, ...]
    themes: tuple[str, ...]


@require_safe
@signed_in
def journal(request: HttpRequest) -> HttpResponse:
    """The newest days that have an entry, and how mood and energy went over the last thirty."""
    where = queries.zone()
    before = _before(request)
    found = queries.days_written(before, where, PAGE + 1)
    shown, more = found[:PAGE], len(found) > PAGE
    today = local_day(clock.now(), where)
    drawn = [] if before else [today - timedelta(days=number) for number in range(PLOTTED - 1, -1, -1)]
    spans = [(day, day) for day in shown] + ([(drawn[0], today)] if drawn else [])
    read = queries.within(spans, where)
    context = {
        "place": "journal",
        "days": _told([read[day] for day in shown], where),
        "plot": plot([read[day] for day in drawn]),
        "plotted": PLOTTED,
        "zone": where.key,
        "paged": before is not None,
        "older": shown[-1].isoformat() if more else None,
    }
    return render(request, "journal/journal.html", context)


@require_safe
@signed_in
def one_day(request: HttpRequest, day: str) -> HttpResponse:
    """One day."""
    where = queries.zone()
    found = _date(day)
    (told,) = _told(queries.between(found, found, where), where)
    earlier, later = queries.neighbours(found, where)
    context = {"place": "journal", "day": told, "earlier": earlier, "later": later, "zone": where.key}
    return render(request, "journal/day.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def edit(request: HttpRequest, session: UUID) -> HttpResponse:
    """Change what the journal says of a session. What was typed comes back when it cannot be saved."""
    where = queries.zone()
    found = queries.entry(session)
    if found is None or not found.readable:
        raise Http404
    day = local_day(found.started_at, where)
    text, problem = found.blob or "", ""
    if request.method == "POST":
        text = request.POST.get("text", "")
        try:
            actions.edit(session, text)
        except actions.NotFound:
            raise Http404 from None
        except actions.TooLong as error:
            problem = f"These are {error.words:,} words; at most {error.limit:,} fit. Nothing was saved yet."
        else:
            messages.success(request, "Saved. Your words stand; nothing is written over them.")
            return redirect("journal-day", day.isoformat())
    context = {
        "place": "journal",
        "entry": found,
        "day": day,
        "when": time_range(found, where),
        "text": text,
        "problem": problem,
    }
    return render(request, "journal/edit.html", context, status=400 if problem else 200)


def _told(days: Sequence[Day], where: ZoneInfo) -> list[ToldDay]:
    states = queries.unwritten(days)
    return [
        ToldDay(
            day.day,
            tuple(
                Told(
                    entry,
                    time_range(entry, where),
                    MOOD_WORDS[entry.feeling.mood] if entry.feeling else "",
                    MISSING.get(JobState(states[entry.session]), "") if entry.session in states else "",
                )
                for entry in day.entries
            ),
            day.themes,
        )
        for day in days
    ]


def _before(request: HttpRequest) -> date | None:
    given = request.GET.get("before", "")
    day = moments.day(given)
    if given and day is None:
        raise BadRequest("That is no day.")
    return day


def _date(given: str) -> date:
    day = moments.day(given)
    if day is None:
        raise Http404
    return day
