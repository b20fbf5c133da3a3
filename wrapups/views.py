"""The pages of wrap-ups: all of them, one to read, to edit and to delete, and what became of a session's."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memberintel.accounts.access import signed_in, tier_required
from memberintel.lib import paging
from memberintel.tenancy.models import User
from memberintel.usage import charges
from memberintel.usage.models import Kind
from memberintel.vault.errors import CannotOpen
from sessions import queries as sessions
from wrapups import actions, filters, forms, queries, search
from wrapups.domain.open_items import PARKED_AFTER, STATUSES
from wrapups.filters import Wanted
from wrapups.queries import WrapUp

OPEN_ITEMS_PAGE = 50
GIVEN_UP = (
    "Writing the notes did not work, also on later days. The conversation itself is kept, word for word."
)
TICKED = "Ticked off. I no longer bring it up."
PUT_BACK = "Put back: it is open again."

pro = tier_required(
    "wrap_up_pages",
    feature="Wrap-ups",
    explanation="After each conversation I write a short note: what was decided, what is open, what I learned "
    "and where to begin next time. I use these notes on every tier, also on yours. On Pro you can read them, "
    "correct them and delete them.",
)

# Why a closed session has no wrap-up to show, by the state of the work owed for it.
STATES = {
    "done": ("Written", "These notes are written."),
    "trivial": ("Nothing to note", "There was too little in this conversation to take notes on."),
    "off_record": ("Off the record", "This conversation was off the record: no notes were taken."),
    "queued": ("Writing my notes", "I am writing my notes on this conversation. It takes a moment."),
    "unfunded": (
        "No notes yet",
        "This month's wrap-ups are used up. The conversation is kept, and the notes follow if the budget is back "
        "within a week.",
    ),
    "failed": (
        "No notes yet",
        "Writing the notes did not work. I try again by myself, once a day; the conversation itself is kept.",
    ),
    "deleted": ("You deleted these notes", "They are gone, also from what I knew in later conversations."),
    "expired": (
        "These notes have expired",
        "They, or the conversation they would have been of, were older than your account keeps them. They are gone,"
        " also from what I am told.",
    ),
}


@require_safe
@signed_in
@pro
def wrap_up_list(request: HttpRequest) -> HttpResponse:
    """All wrap-ups, newest first, a page at a time; those that have some words, of some days, with something open.

    With `state` instead the conversations whose notes are in another state, each with why.
    """
    wanted = filters.read(request.GET)
    if wanted.state:
        return _states(request, wanted)
    cursor = _asked_cursor(request)
    found = queries.list_wrap_ups(**cursor, **wanted.of_wrap_ups(), limit=queries.PAGE + 1)
    shown, more = found[: queries.PAGE], len(found) > queries.PAGE
    context = {
        "place": "wrap-ups",
        "wanted": wanted,
        "states": filters.CHOICES,
        "wrap_ups": shown,
        "pending": [] if cursor["before"] or wanted.narrows else queries.list_pending(),
        "paged": cursor["before"] is not None,
        "older": wanted.address(_cursor(shown[-1])) if more else None,
        "newest": wanted.address(),
        "read": search.READ,
    }
    return render(request, "wrapups/wrap_ups.html", context)


def _states(request: HttpRequest, wanted: Wanted) -> HttpResponse:
    cursor = _asked_cursor(request)
    found = queries.list_states(**cursor, state=wanted.state, limit=queries.PAGE + 1)
    shown, more = found[: queries.PAGE], len(found) > queries.PAGE
    last = paging.address(shown[-1].session_last_activity_at, shown[-1].job_id) if more else ""
    title, words = STATES[wanted.state]
    context = {
        "place": "wrap-ups",
        "wanted": wanted,
        "states": filters.CHOICES,
        "owed": shown,
        "title": title,
        "words": words,
        "paged": cursor["before"] is not None,
        "older": wanted.address(last) if more else None,
        "newest": wanted.address(),
    }
    return render(request, "wrapups/states.html", context)


def _asked_cursor(request: HttpRequest) -> dict[str, Any]:
    try:
        before, before_id = paging.read(request.GET.dict())
        paging.check(before, before_id)
    except ValueError as error:  # half a cursor, or one that is none
        raise BadRequest(str(error)) from None
    return {"before": before, "before_id": before_id}


@require_safe
@signed_in
@pro
def open_items(request: HttpRequest) -> HttpResponse:
    """What conversations left open, and what became of it; a page at a time."""
    status = request.GET.get("status", "open")
    if status not in STATUSES:
        raise BadRequest("status is open, resolved or parked")
    cursor = _asked_cursor(request)
    found = queries.open_items_of(status=status, **cursor, limit=OPEN_ITEMS_PAGE + 1)
    shown, more = queries.whole_wrap_ups(found, OPEN_ITEMS_PAGE)
    texts = queries.texts_of(shown)
    rows = [(item, texts.get(item.id)) for item in shown]
    older = paging.address(shown[-1].session_last_activity_at, shown[-1].wrap_up) if more else None
    context = {
        "place": "wrap-ups",
        "status": status,
        "statuses": STATUSES,
        "rows": rows,
        "paged": cursor["before"] is not None,
        "older": older and f"status={status}&{older}",
        "days": PARKED_AFTER.days,
    }
    return render(request, "wrapups/open_items.html", context)


@require_POST
@signed_in
@pro
def tick(request: HttpRequest, wrap_up: UUID, item: UUID) -> HttpResponse:
    """Tick an open item off, or put it back; then back to the page it was done on."""
    done = request.POST.get("done") == "1"
    try:
        actions.tick(wrap_up, item, done=done)
    except actions.NotFound:
        raise Http404 from None
    messages.success(request, TICKED if done else PUT_BACK)
    if request.POST.get("back") == "list":
        return redirect("open-items")
    return redirect(f"{reverse('wrap-up', args=[wrap_up])}#open")


@require_safe
@signed_in
@pro
def wrap_up(request: HttpRequest, wrap_up: UUID) -> HttpResponse:
    """One wrap-up."""
    found = _wrap_up(wrap_up)
    kept = sessions.kept(found.session_id)
    return render(request, "wrapups/wrap_up.html", {"place": "wrap-ups", "wrap_up": found, "kept": kept})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@pro
def edit(request: HttpRequest, wrap_up: UUID) -> HttpResponse:
    """Change what a wrap-up says. What was typed comes back when it cannot be saved."""
    found = _wrap_up(wrap_up)
    if not found.readable:
        return redirect("wrap-up", wrap_up)
    if request.method != "POST":
        return _editor(request, found, forms.of_wrap_up(found))
    try:
        actions.edit(wrap_up, forms.read(request.POST), by=cast(User, request.user).id)
    except actions.NotFound:
        raise Http404 from None
    except actions.Empty:
        problem = "A wrap-up needs a summary. To get rid of the whole of it, delete it."
    except actions.TooLong as error:
        problem = f"These are {error.words:,} words; at most {error.limit:,} fit. Nothing was saved yet."
    except CannotOpen:
        problem = "This wrap-up cannot be opened right now, so nothing was written over it."
    else:
        messages.success(request, "Saved. From the next conversation on I go by your words.")
        return redirect("wrap-up", wrap_up)
    return _editor(request, found, forms.of_post(request.POST), problem)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@pro
def delete(request: HttpRequest, wrap_up: UUID) -> HttpResponse:
    """Ask once, then delete for good."""
    found = _wrap_up(wrap_up)
    if request.method != "POST":
        return render(request, "wrapups/delete.html", {"place": "wrap-ups", "wrap_up": found})
    try:
        actions.delete(wrap_up, by=cast(User, request.user).id)
    except actions.NotFound:
        raise Http404 from None
    messages.success(
        request, "Deleted, also from what I knew in later conversations. It is not written again."
    )
    return redirect("wrap-ups")


@require_safe
@signed_in
def of_session(request: HttpRequest, session: UUID) -> HttpResponse:
    """The wrap-up of a session, or what became of it: that is told on every tier."""
    found = queries.wrap_up_id_of(session)
    if found is not None:
        return redirect("wrap-up", found)
    owed = queries.owed_for(session)
    if owed is None or owed.state == "done":
        raise Http404
    title, words = STATES[owed.state]
    context = {
        "place": "wrap-ups",
        "session_id": session,
        "title": title,
        "words": GIVEN_UP if owed.given_up else words,
        "state": owed.state,
        "budget": charges.left(Kind.WRAP_UP) if owed.state == "unfunded" else None,
    }
    return render(request, "wrapups/none.html", context)


def _editor(request: HttpRequest, found: WrapUp, form: forms.Form, problem: str = "") -> HttpResponse:
    context = {"place": "wrap-ups", "wrap_up": found, "form": form, "problem": problem}
    return render(request, "wrapups/edit.html", context, status=400 if problem else 200)


def _wrap_up(wrap_up: UUID) -> WrapUp:
    found = queries.get_wrap_up(wrap_up)
    if found is None:
        raise Http404
    return found


def _cursor(wrap_up: WrapUp) -> str:
    return paging.address(wrap_up.session_last_activity_at, wrap_up.id)
