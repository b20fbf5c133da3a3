"""The API of sessions: what the pages' script and customers' own tools call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import reverse
from pydantic import BaseModel, ConfigDict, StringConstraints

from memberintel.accounts.http import NotFound, Problem, api, body
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.unit import unit
from sessions import actions, conduct, follow, queries
from sessions.log import Turn, TurnRunning

RUNNING = "The advisor is still answering your last message. Wait for the end, or stop the answer first."
ClientKey = Annotated[str, StringConstraints(min_length=8, max_length=100, pattern=r"^[A-Za-z0-9._:-]+$")]


class Body(BaseModel):
    """A body with no other fields than these."""

    model_config = ConfigDict(extra="forbid", strict=False)


class MessageBody(Body):
    """A message; `client_key` is made by the client, the same for each time it sends this one message."""

    text: str
    client_key: ClientKey
    session: UUID | None = None
    interrupt: bool = False
    close_previous: bool = False


class RetryBody(Body):
    """The attempt that is to be followed by another."""

    attempt: int


class OpenBody(Body):
    """How to open a session."""

    close_previous: bool = False


@api("POST")
async def messages(request: HttpRequest) -> HttpResponseBase:
    """Say something: 201 with the session, the turn, and where to follow the answer."""
    given = body(request, MessageBody)
    said = await _told(conduct.say(**given.model_dump()))
    answer = {
        **_turn(said.session, said.turn, said.seq),
        "seq": said.seq,
        "opened": said.opened,
        "moved": said.moved,
    }
    return JsonResponse(answer, status=HTTPStatus.OK if said.repeated else HTTPStatus.CREATED)


def _turn(session: UUID, which: Turn, since: int) -> dict[str, Any]:
    return {
        "session": str(session),
        "turn": str(which.id),
        "attempt": which.attempt,
        "stream": stream_address(session, which.id, which.attempt, since),
    }


def stream_address(session: UUID, turn_id: UUID, attempt: int, since: int) -> str:
    """Where an attempt is followed; `since` is the number of the turn's message in the log."""
    return f"{reverse('api-stream', args=[session, turn_id])}?attempt={attempt}&since={since}"


async def _told[R](work: Awaitable[R]) -> R:
    """What the work gives; its refusals as problems."""
    try:
        return await work
    except actions.NotFound:
        raise NotFound from None
    except actions.Refusal as refusal:
        raise Problem(refusal.status, refusal.code.replace("_", "-"), refusal.text, **refusal.extra) from None
    except TurnRunning as running:
        raise Problem(
            409, "turn-running", RUNNING, turn=str(running.turn) if running.turn else None
        ) from None


async def _act[**P, R](action: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await _told(unit(current_scope(), action, *args, **kwargs))


@api("POST")
async def open_session(request: HttpRequest) -> HttpResponseBase:
    """Open a session by hand; 409 names the open one unless `close_previous`."""
    given = body(request, OpenBody)
    session = await _told(conduct.open_session(close_previous=given.close_previous))
    return JsonResponse({"session": str(session)}, status=HTTPStatus.CREATED)


@api("GET")
async def stream(request: HttpRequest, session: UUID, turn_id: UUID) -> HttpResponseBase:
    """Follow a turn; resumes after `Last-Event-ID`."""
    if await _act(queries.get_session, session) is None:
        raise NotFound
    place = follow.Place(session, turn_id, _whole(request, "attempt", 1), _whole(request, "since", 1))
    last = request.headers.get("Last-Event-ID", "")
    response = StreamingHttpResponse(
        follow.stream(current_scope(), place, last), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


def _whole(request: HttpRequest, name: str, default: int) -> int:
    given = request.GET.get(name, str(default))
    if not given.isdecimal() or not 1 <= int(given) < 2**31:
        raise Problem(400, "invalid-parameter", f"{name}: a whole number from 1 on, not {given[:40]!r}.")
    return int(given)


@api("POST")
async def stop(request: HttpRequest, session: UUID, turn_id: UUID) -> HttpResponseBase:
    """Stop an answer, whichever process gives it; what was generated is kept."""
    stopping = await _told(conduct.stop(session=session, turn_id=turn_id))
    return JsonResponse({"stopping": stopping}, status=HTTPStatus.ACCEPTED)


@api("POST")
async def retry(request: HttpRequest, session: UUID, turn_id: UUID) -> HttpResponseBase:
    """Answer the session's last message again; a second click on the same attempt does nothing."""
    given = body(request, RetryBody)
    following, began, since = await _told(
        conduct.retry(session=session, turn_id=turn_id, attempt=given.attempt)
    )
    return JsonResponse(
        _turn(session, following, since), status=HTTPStatus.CREATED if began else HTTPStatus.OK
    )


@api("POST")
async def end(request: HttpRequest, session: UUID) -> HttpResponseBase:
    """End the session; a running answer is stopped first."""
    body(request, Body)
    return JsonResponse({"ended": await _told(conduct.end(session=session))})


@api("POST")
async def leaving(request: HttpRequest, session: UUID) -> HttpResponseBase:
    """The page says goodbye as it leaves (a beacon: nobody reads the answer)."""
    if await _act(queries.get_session, session) is None:
        raise NotFound
    await _act(actions.leave, session=session)
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


@api("POST")
async def presence(request: HttpRequest) -> HttpResponseBase:
    """A page of the product is shown; says which session it would be leaving when it goes, if any."""
    await _act(actions.stay)
    standing = await _act(queries.open_session)
    return JsonResponse({"session": str(standing.id) if standing else None})
