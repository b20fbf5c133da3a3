"""The API of sessions: what the pages' script and customers' own tools call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import reverse
from pydantic import BaseModel, ConfigDict, StringConstraints

from memberintel.accounts.http import NotFound, Problem, api, body
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.unit import unit
from sessions import actions, follow, lease, queries, turn
from sessions.log import Turn, TurnRunning

STOP_SECONDS = 3.0
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
    said = await _say(given)
    if not said.repeated:
        turn.start(current_scope(), said.session, said.turn)
    answer = {
        **_turn(said.session, said.turn, said.seq),
        "seq": said.seq,
        "opened": said.opened,
        "moved": said.moved,
    }
    return JsonResponse(answer, status=HTTPStatus.OK if said.repeated else HTTPStatus.CREATED)


async def _say(given: MessageBody) -> actions.Said:
    """Say it; with `interrupt` or `close_previous` the answer that runs is stopped first."""
    stops = given.interrupt or given.close_previous
    while True:
        try:
            return await _act(
                actions.say,
                text=given.text,
                client_key=given.client_key,
                session=given.session,
                close_previous=given.close_previous,
            )
        except TurnRunning as running:
            if not stops or running.turn is None:
                raise _running(running) from None
            await _stop(running.turn)
            stops = False


def _turn(session: UUID, which: Turn, since: int) -> dict[str, Any]:
    where = reverse("api-stream", args=[session, which.id])
    return {
        "session": str(session),
        "turn": str(which.id),
        "attempt": which.attempt,
        "stream": f"{where}?attempt={which.attempt}&since={since}",
    }


async def _act[**P, R](action: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The action in the caller's scope; its refusals as problems."""
    try:
        return await unit(current_scope(), action, *args, **kwargs)
    except actions.NotFound:
        raise NotFound from None
    except actions.Refusal as refusal:
        raise Problem(refusal.status, refusal.code.replace("_", "-"), refusal.text, **refusal.extra) from None


def _running(running: TurnRunning) -> Problem:
    return Problem(
        409,
        "turn-running",
        "The advisor is still answering your last message. Wait for the end, or stop the answer first.",
        turn=str(running.turn) if running.turn else None,
    )


@api("POST")
async def open_session(request: HttpRequest) -> HttpResponseBase:
    """Open a session by hand; 409 names the open one unless `close_previous`."""
    given = body(request, OpenBody)
    if given.close_previous:
        await _stop_in(await _act(queries.open_session))
    session = await _act(actions.open_session, close_previous=given.close_previous)
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
    if await _act(queries.get_session, session) is None:
        raise NotFound
    stopped = await _act(lease.ask_to_stop, session, turn_id)
    await turn.stop(turn_id)
    return JsonResponse({"stopping": stopped}, status=HTTPStatus.ACCEPTED)


@api("POST")
async def retry(request: HttpRequest, session: UUID, turn_id: UUID) -> HttpResponseBase:
    """Answer the session's last message again; a second click on the same attempt does nothing."""
    given = body(request, RetryBody)
    try:
        following, began = await _act(actions.retry, session=session, turn=turn_id, attempt=given.attempt)
    except TurnRunning as running:
        raise _running(running) from None
    if began:
        turn.start(current_scope(), session, following)
    since = await _act(queries.message_seq, session, turn_id)
    return JsonResponse(
        _turn(session, following, since), status=HTTPStatus.CREATED if began else HTTPStatus.OK
    )


@api("POST")
async def end(request: HttpRequest, session: UUID) -> HttpResponseBase:
    """End the session; a running answer is stopped first."""
    body(request, Body)
    await _stop_in(await _act(queries.get_session, session))
    ended = await _act(actions.end, session=session)
    return JsonResponse({"ended": ended})


@api("POST")
async def leaving(request: HttpRequest, session: UUID) -> HttpResponseBase:
    """The page says goodbye as it leaves (a beacon: nobody reads the answer)."""
    if await _act(queries.get_session, session) is None:
        raise NotFound
    await _act(actions.leave, session=session)
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


@api("POST")
async def presence(request: HttpRequest) -> HttpResponseBase:
    """A page of the product is shown."""
    await _act(actions.stay)
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


async def _stop_in(session: Any) -> None:
    running = queries.running_turn(session) if session is not None else None
    if running is not None:
        await _stop(running)


async def _stop(which: UUID) -> None:
    """Stop the turn and wait until it has kept what it has; after three seconds it loses the right to write."""
    session = await _act(queries.session_of_turn, which)
    if session is None:
        return
    await _act(lease.ask_to_stop, session, which)
    await turn.stop(which)
    until = time.monotonic() + STOP_SECONDS
    while time.monotonic() < until:
        row = await _act(queries.get_session, session)
        if row is None or queries.running_turn(row) != which:
            return
        await asyncio.sleep(0.05)
    await _act(lease.revoke, session, which)
