"""The pages of conversations: the one going on, the list of all, and each word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memberintel.accounts.access import signed_in
from memberintel.lib import paging
from memberintel.lib.text import clean
from memberintel.privacy import participants
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import CannotOpen
from sessions import actions, conduct, lists, queries, search
from sessions.api import RUNNING, stream_address
from sessions.domain import tools
from sessions.domain.transcript import AnswerItem, Item, PromptItem
from sessions.log import TurnRunning
from sessions.models import Session

LONGEST_NUMBER = 15  # digits of an event's number in an address
ARCHIVED = "Archived. It stands under “Archived” and takes no messages until you take it out."
UNARCHIVED = "Taken out of the archive."
UNTITLED = "A conversation"
OFF_RECORD = "Off the record"
SEALED = "This title cannot be opened"


@dataclass(frozen=True)
class Block:
    """Items of one turn, which the page replaces as a whole, or items that belong to no turn."""

    turn: UUID | None
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Row:
    """A session in the list."""

    session: Session
    title: str


@require_safe
@signed_in
def chat(request: HttpRequest) -> HttpResponse:
    """The conversation that is going on, or the place to begin one."""
    return _chat(request)


@require_POST
@signed_in
async def chat_act(request: HttpRequest) -> HttpResponseBase:
    """What the forms of the chat page do when no script does it: say, stop, try again, end."""
    act = ACTS.get(request.POST.get("act", ""))
    if act is None:
        raise BadRequest("unknown act")
    try:
        return await act(request)
    except actions.NotFound:
        raise Http404 from None
    except TurnRunning:
        return await _refused(request, 409, RUNNING, running=True)
    except actions.Refusal as refusal:
        used_up = isinstance(refusal, actions.BudgetUsedUp)
        return await _refused(request, refusal.status, refusal.text, used_up=used_up)


async def _say(request: HttpRequest) -> HttpResponse:
    await conduct.say(
        text=request.POST.get("text", ""),
        client_key=clean(request.POST.get("client_key", ""))[:100] or str(uuid4()),
        session=_id(request, "session") if request.POST.get("session") else None,
        interrupt=request.POST.get("interrupt") == "true",
    )
    return redirect(reverse("chat") + "#end-of-conversation")


async def _stop(request: HttpRequest) -> HttpResponse:
    session = _id(request, "session")
    await conduct.stop(session=session, turn_id=_id(request, "turn"))
    await conduct.stop_in(session)
    return redirect("chat")


async def _retry(request: HttpRequest) -> HttpResponse:
    attempt = request.POST.get("attempt", "")
    if not attempt.isdecimal() or len(attempt) > 9:
        raise BadRequest("attempt is a number")
    await conduct.retry(session=_id(request, "session"), turn_id=_id(request, "turn"), attempt=int(attempt))
    return redirect("chat")


async def _end(request: HttpRequest) -> HttpResponse:
    session = _id(request, "session")
    await conduct.end(session=session)
    return redirect(f"{reverse('chat')}?{urlencode({'ended': session})}")


async def _forgot(request: HttpRequest) -> HttpResponse:
    await unit(current_scope(), actions.forgot, session=_id(request, "session"))
    return redirect(f"{reverse('chat')}?{urlencode({'noted': 'forgot'})}#end-of-conversation")


ACTS = {"say": _say, "stop": _stop, "retry": _retry, "end": _end, "forgot": _forgot}


async def _refused(
    request: HttpRequest, status: int, alert: str, *, running: bool = False, used_up: bool = False
) -> HttpResponseBase:
    """The page again with what was typed and why it was not taken."""
    page = sync_to_async(signed_in(_chat))
    return await page(
        request,
        status=status,
        alert=alert,
        alert_running=running,
        alert_used_up=used_up,
        draft=request.POST.get("text", ""),
    )


def _chat(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    session = queries.open_session()
    part = queries.newest_part(session) if session else None
    items = part.items if part else []
    context = {
        "place": "chat",
        "session": session,
        "blocks": blocks(items),
        "earlier": part.span.earlier if part else None,
        "prompts": queries.prompts(session) if session else [],
        "running": _running(session, items) if session else None,
        "client_key": str(uuid4()),
        "has_history": bool(session is None and queries.list_sessions(limit=1)),
        "ended": _ended(request) if session is None else None,
        "noted": request.GET.get("noted") == "forgot",
        "limit": settings.MESSAGE_LIMIT_CHARACTERS,
        "tool_words": tools.WORDS,
        "live": True,
    }
    return render(request, "sessions/chat.html", context | more, status=status)


def _ended(request: HttpRequest) -> Session | None:
    """The session that was ended a moment ago, to point to it."""
    try:
        found = queries.get_session(UUID(request.GET.get("ended", "")))
    except ValueError:
        return None
    return found if found and not found.is_open else None


def _running(session: Session, items: list[Item]) -> dict[str, str] | None:
    """The answer that is being given, for the script to follow."""
    for item in reversed(items):
        if isinstance(item, AnswerItem) and item.state == "running" and item.turn:
            since = queries.message_seq(session.id, item.turn)
            where = stream_address(session.id, item.turn, item.attempt, since)
            return {"turn": str(item.turn), "stream": where}
    return None


@require_safe
@signed_in
def session_list(request: HttpRequest) -> HttpResponse:
    """All conversations, newest first, a page at a time."""
    try:
        before, before_id = paging.read(request.GET.dict())
        wanted = lists.read(request.GET)
        rows = queries.list_sessions(
            before=before, before_id=before_id, **wanted.filters(), limit=queries.PAGE + 1
        )
    except ValueError as error:  # half a cursor, or one that is none; a day that is none
        raise BadRequest(str(error)) from None
    shown, more = rows[: queries.PAGE], len(rows) > queries.PAGE
    context = {
        "place": "sessions",
        "rows": [Row(row, title_of(row)) for row in shown],
        "wanted": wanted,
        "paged": before is not None,
        "newest": wanted.address(),
        "older": wanted.address(_cursor(shown[-1])) if more else None,
    }
    return render(request, "sessions/sessions.html", context)


@dataclass(frozen=True)
class Result:
    """A hit in the list of results."""

    hit: search.Hit
    title: str
    address: str


@require_safe
@signed_in
def find(request: HttpRequest) -> HttpResponse:
    """What was said about something, the best hits first, a page at a time."""
    query, page = request.GET.get("q", ""), _page(request)
    found = search.find(query, skip=(page - 1) * search.PAGE)
    context = {
        "place": "sessions",
        "query": query[: search.LONGEST],
        "longest": search.LONGEST,
        "found": found,
        "results": [_result(hit) for hit in found.hits],
        "previous": _results_page(query, page - 1) if page > 1 else None,
        "next": _results_page(query, page + 1) if page * search.PAGE < found.total else None,
    }
    return render(request, "sessions/search.html", context)


def _page(request: HttpRequest) -> int:
    given = request.GET.get("page", "1")
    if not given.isdecimal() or not 1 <= len(given) <= 4 or int(given) < 1:
        raise BadRequest("page is a number from 1 on")
    return int(given)


def _results_page(query: str, page: int) -> str:
    return urlencode({"q": query[: search.LONGEST], "page": page})


def _result(hit: search.Hit) -> Result:
    title = (hit.title or UNTITLED) if hit.title_readable else SEALED
    return Result(hit, title, reverse("session", args=[hit.session]) + search.address(hit))


@require_safe
@signed_in
def transcript(request: HttpRequest, session: UUID) -> HttpResponse:
    """One conversation, word for word."""
    row = _session(session)
    if row.erased_at is not None:
        return _erased(request, row)
    part = queries.transcript_part(row, **_where(request))
    context = {
        "place": "sessions",
        "session": row,
        "title": title_of(row),
        "blocks": blocks(part.items),
        "span": part.span,
        "told_nothing": row.imported and part.span.first == 1 and not _has_prompt(part.items),
    }
    return render(request, "sessions/session.html", context)


def _has_prompt(items: list[Item]) -> bool:
    return any(isinstance(item, PromptItem) for item in items)


def _where(request: HttpRequest) -> dict[str, int]:
    """The part of a transcript that is asked for; of several places the first named here."""
    for name in ("at", "before", "after"):
        if given := request.GET.get(name):
            if not given.isdecimal() or len(given) > LONGEST_NUMBER:
                raise BadRequest(f"{name} is the number of an event")
            return {name: int(given)}
    return {}


@require_safe
@signed_in
def earlier(request: HttpRequest, session: UUID) -> HttpResponse:
    """What came before the first event that a chat page shows, for the script to put above it."""
    row = _session(session)
    part = queries.transcript_part(row, **({"before": 1} | _where(request)))
    context = {
        "session": row,
        "blocks": blocks(part.items),
        "earlier": part.span.earlier,
        "live": row.is_open,
    }
    return render(request, "sessions/_earlier.html", context)


@require_POST
@signed_in
def archive(request: HttpRequest, session: UUID) -> HttpResponse:
    """Put a conversation into the archive, or take it out."""
    put = request.POST.get("archived") == "yes"
    try:
        if put:
            actions.archive(session=session)
        else:
            actions.unarchive(session=session)
    except actions.NotFound:
        raise Http404 from None
    except actions.Refusal as refusal:
        messages.warning(request, refusal.text)
    else:
        messages.success(request, ARCHIVED if put else UNARCHIVED)
    return redirect("session", session)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
async def go_on(request: HttpRequest, session: UUID) -> HttpResponseBase:
    """Continue a closed conversation in one that follows it; what is open ends first."""
    page = sync_to_async(signed_in(_ask_to_go_on))
    if request.method != "POST":
        return await page(request, session)
    try:
        await conduct.say(
            text=request.POST.get("text", ""),
            client_key=clean(request.POST.get("client_key", ""))[:100] or str(uuid4()),
            session=session,
            close_previous=True,
        )
    except actions.NotFound:
        raise Http404 from None
    except TurnRunning:
        return await page(request, session, status=409, alert=RUNNING)
    except actions.Refusal as refusal:
        return await page(request, session, status=refusal.status, alert=refusal.text)
    return redirect(reverse("chat") + "#end-of-conversation")


def _ask_to_go_on(request: HttpRequest, session: UUID, *, status: int = 200, alert: str = "") -> HttpResponse:
    row, standing = _session(session), queries.open_session()
    if row.erased_at is not None:
        return redirect("session", session)
    if standing is not None and standing.id == row.id:
        return redirect("chat")
    context = {
        "place": "sessions",
        "session": row,
        "title": title_of(row),
        "standing": standing,
        "standing_title": title_of(standing) if standing else "",
        "alert": alert,
        "draft": request.POST.get("text", ""),
        "client_key": request.POST.get("client_key") or str(uuid4()),
        "limit": settings.MESSAGE_LIMIT_CHARACTERS,
    }
    return render(request, "sessions/continue.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
async def off_record(request: HttpRequest) -> HttpResponseBase:
    """Say what off the record means, then open such a conversation; what is open ends first."""
    if request.method != "POST":
        return await sync_to_async(signed_in(_explain_off_record))(request)
    await conduct.open_session(close_previous=True, off_record=True)
    return redirect("chat")


def _explain_off_record(request: HttpRequest) -> HttpResponse:
    context = {"place": "chat", "standing": queries.open_session()}
    return render(request, "sessions/off_record.html", context)


def _erased(request: HttpRequest, row: Session) -> HttpResponse:
    """What there is to say of a conversation whose words are gone."""
    left = participants.left_from_session(row.id)
    return render(request, "sessions/erased.html", {"place": "sessions", "session": row, "left": left})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
async def delete(request: HttpRequest, session: UUID) -> HttpResponseBase:
    """Ask once, say what goes and what stays, then delete for good."""
    if request.method != "POST":
        page = sync_to_async(signed_in(_ask_to_delete))
        return await page(request, session)
    try:
        await conduct.delete(session=session)
    except actions.NotFound:
        raise Http404 from None
    return redirect("session", session)


def _ask_to_delete(request: HttpRequest, session: UUID) -> HttpResponse:
    row = _session(session)
    if row.is_deleted:
        return redirect("session", session)
    context = {
        "place": "sessions",
        "session": row,
        "title": title_of(row),
        "left": participants.left_from_session(session),
    }
    return render(request, "sessions/delete.html", context)


@require_safe
@signed_in
def turn(request: HttpRequest, session: UUID, turn: UUID) -> HttpResponse:
    """One turn as it stands in the page, for the script to put in place when an answer has ended."""
    row = _session(session)
    block = next((block for block in blocks(queries.turn_items(row, turn)) if block.turn == turn), None)
    if block is None:
        raise Http404
    context = {"block": block, "session": row, "live": row.is_open}
    response = render(request, "sessions/_block.html", context)
    response["Cache-Control"] = "no-store"
    return response


@require_safe
@signed_in
def remembered(request: HttpRequest, session: UUID) -> HttpResponse:
    """What the advisor knows in a session, for the script to put beside a conversation that has just begun."""
    row = _session(session)
    context = {"prompts": queries.prompts(row), "session": row}
    response = render(request, "sessions/_remembered.html", context)
    response["Cache-Control"] = "no-store"
    return response


def blocks(items: list[Item]) -> list[Block]:
    """The items in their order, those of one turn together with what stands between them (the frozen prompt)."""
    grouped: list[Block] = []
    for item in items:
        turn = getattr(item, "turn", None)
        near = range(max(0, len(grouped) - 3), len(grouped))
        begun = next((n for n in near if turn and grouped[n].turn == turn), None)
        if begun is None:
            grouped.append(Block(turn, (item,)))
        else:
            between = [inner for block in grouped[begun:] for inner in block.items]
            grouped[begun:] = [Block(turn, (*between, item))]
    return grouped


def title_of(session: Session) -> str:
    """The title to show, whatever became of it."""
    if session.off_record:
        return OFF_RECORD
    try:
        return session.title or UNTITLED
    except CannotOpen:
        return SEALED


def _session(session: UUID) -> Session:
    row = queries.get_session(session)
    if row is None:
        raise Http404
    return row


def _cursor(session: Session) -> str:
    return paging.address(session.last_activity_at, session.id)


def _id(request: HttpRequest, name: str) -> UUID:
    try:
        return UUID(request.POST.get(name, ""))
    except ValueError:
        raise BadRequest(f"{name} is an id") from None
