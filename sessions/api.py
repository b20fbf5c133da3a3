"""The API of sessions: what the pages' script and customers' own tools call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Flag, Id, Page, Strict, Text, Whole
from memberintel.accounts.fields import Moment as MomentField
from memberintel.accounts.problems import NotFound, Problem
from memberintel.accounts.rest import Endpoint, Streaming, body, described, listed, parameters, wait
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.unit import unit
from sessions import actions, conduct, follow, queries, search, shapes
from sessions.log import Turn, TurnRunning
from sessions.models import Session as Row

RUNNING = "The advisor is still answering your last message. Wait for the end, or stop the answer first."
CLIENT_KEY = r"^[A-Za-z0-9._:-]{8,100}$"

READ = ("read",)
CHAT = ("chat",)
BUSY = "An answer is being given (`turn` names it), or the session's state is against it."

USED_UP = "The month's answers are used up; `renews` is the day from which there are new ones (0:00 UTC)."


class Nothing(Strict):
    """A body without fields, or none."""


class MessageIn(Strict):
    """A message; without `session` it goes to the open one."""

    text = Text(allow_blank=True, help_text="At most 100,000 characters.")
    client_key = serializers.RegexField(
        CLIENT_KEY, help_text="Made by the client, the same for each time it sends this one message."
    )
    session = Id(required=False, allow_null=True, default=None)
    interrupt = Flag(default=False, help_text="Stop the answer that is being given first.")
    close_previous = Flag(default=False, help_text="End the open session first, if it is another one.")


class RetryIn(Strict):
    """The attempt that is to be followed by another."""

    attempt = Whole(min_value=1)


class OpenIn(Strict):
    """How to open a session."""

    close_previous = Flag(default=False, help_text="End the session that is open.")
    off_record = Flag(
        default=False, help_text="Nothing is learned from it, and what was said is erased when it closes."
    )


class PartQuery(Strict):
    """Which part of a session's log: from its beginning, or as one of these says."""

    before = serializers.IntegerField(required=False, min_value=1, max_value=2**53)
    after = serializers.IntegerField(required=False, min_value=0, max_value=2**53)
    at = serializers.IntegerField(
        required=False, min_value=1, max_value=2**53, help_text="An event to have in the middle."
    )
    limit = serializers.IntegerField(
        min_value=1, max_value=500, default=queries.EVENTS, help_text="Events, about: no turn is cut in two."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One place at a time."""
        if len(places := [name for name in ("before", "after", "at") if name in attrs]) > 1:
            raise serializers.ValidationError({places[1]: ["Give one of before, after and at."]})
        return attrs


class FollowPlace(Strict):
    """Which attempt to follow. Take the whole address from what started it."""

    attempt = serializers.IntegerField(default=1, min_value=1, max_value=2**31 - 1)
    since = serializers.IntegerField(default=1, min_value=1, max_value=2**31 - 1)


class SessionsPage(Page):
    """Which sessions, newest activity first."""

    open = serializers.BooleanField(required=False, allow_null=True, default=None)
    archived = serializers.BooleanField(default=False)
    since = MomentField(required=False, help_text="Active at or after this moment.")
    until = MomentField(required=False, help_text="Active before this moment.")


class SearchQuery(Strict):
    """What to look for."""

    q = Text(max_length=10_000, help_text="All words must occur; a part in quotes as it is written.")
    limit = serializers.IntegerField(min_value=1, max_value=50, default=20)


class Search(Endpoint):
    """Search in everything the customer and the advisor have said."""

    scopes = {"GET": READ}

    @described("search", tag="sessions", query=SearchQuery, gives={200: shapes.HitsOut})
    def get(self, request: Request) -> Response:
        """The best hits among the newest, with the part of the text that has what you looked for."""
        asked = parameters(request, SearchQuery)
        found = search.find(asked["q"], limit=asked["limit"])
        return Response(shapes.HitsOut({"items": found.hits, "total": found.total}).data)


class Messages(Endpoint):
    """Messages to the advisor."""

    scopes = {"POST": CHAT}
    costs = {"POST": "say"}

    @described(
        "say",
        tag="chat",
        takes=MessageIn,
        gives={201: shapes.SaidOut, 200: OpenApiResponse(shapes.SaidOut, description="It was said before.")},
        errors={
            402: USED_UP,
            404: "There is no such session, or it is somebody else's.",
            409: BUSY,
            413: "The message is longer than a message may be.",
            422: "The client key was used for another text.",
        },
    )
    def post(self, request: Request) -> Response:
        """Say something.

        The message is kept before this returns; the answer is then followed at `stream`. The same client key and
        text again is the same message: it is safe to send again after a lost connection.
        """
        given = body(request, MessageIn)
        said = _wait(conduct.say, **given)
        answer = {
            **_turn(said.session, said.turn, said.seq),
            "seq": said.seq,
            "opened": said.opened,
            "moved": said.moved,
        }
        return Response(answer, status=200 if said.repeated else 201)


class Sessions(Endpoint):
    """All sessions."""

    scopes = {"GET": READ, "POST": CHAT}

    @described("list_sessions", tag="sessions", query=SessionsPage, gives={200: shapes.SessionsOut})
    def get(self, request: Request) -> Response:
        """Sessions by last activity, newest first. One that is touched while you page moves to the front."""
        page = parameters(request, SessionsPage)
        limit = page.pop("limit")
        rows = queries.list_sessions(limit=limit + 1, **page)
        return listed(request, list(shapes.SessionOut(rows, many=True).data), _cursor, limit)

    @described(
        "open_session",
        tag="sessions",
        takes=OpenIn,
        gives={201: shapes.OpenedOut},
        errors={409: "One is open already; `session` names it. Send `close_previous` to end it."},
    )
    def post(self, request: Request) -> Response:
        """Open a session by hand. A message does so by itself."""
        given = body(request, OpenIn)
        return Response({"session": str(_wait(conduct.open_session, **given))}, status=201)


class Session(Endpoint):
    """One session."""

    scopes = {"GET": READ, "DELETE": CHAT}

    @described("get_session", tag="sessions", by_id=True, query=PartQuery, gives={200: shapes.SessionPartOut})
    def get(self, request: Request, session: UUID) -> Response:
        """A session with its log, in order, a part at a time; of one that was erased, when and why."""
        asked = parameters(request, PartQuery)
        limit = asked.pop("limit")
        row = _session(session)
        running = None
        if turn_id := queries.running_turn(row):
            since = queries.message_seq(row.id, turn_id)
            running = _turn(row.id, Turn(turn_id, row.turn_attempt, row.turn_owner), since)
        part = queries.transcript_part(row, **asked, size=limit)
        return Response(
            {
                **shapes.SessionOut(row).data,
                "running": running,
                "items": [shapes.told(item) for item in part.items],
                "previous": _part(request, "before", part.span.earlier, limit),
                "next": _part(request, "after", part.span.later, limit),
            }
        )

    @described("delete_session", tag="sessions", by_id=True, gives={204: None})
    def delete(self, request: Request, session: UUID) -> Response:
        """Delete a session whole: every word, its notes, what it added to search, and copies in later prompts.

        An open one ends first, and no notes are written. It cannot be undone; deleting it again does nothing.
        """
        _wait(conduct.delete, session=session)
        return Response(status=204)


class Stream(Streaming):
    """An answer while it is given."""

    scopes = {"GET": (*CHAT, *READ)}

    @described(
        "follow_turn",
        tag="chat",
        by_id=True,
        query=FollowPlace,
        headers=(
            OpenApiParameter(
                "Last-Event-ID", str, OpenApiParameter.HEADER, description="Resume after this event."
            ),
        ),
        gives={
            200: OpenApiResponse(
                OpenApiTypes.STR,
                description="Server-sent events with JSON data: `turn` (what there is so far; it replaces what you"
                " have), `text`, `reasoning`, `tool`, `notice`, `reconnect` (connect again), and at the end `done`"
                " (`outcome`: complete or stopped) or `error` (`code`, `message`, `retryable`).",
            )
        },
        media_type="text/event-stream",
    )
    async def get(self, request: HttpRequest, session: UUID, turn_id: UUID) -> HttpResponseBase:
        """Follow an answer as it is written.

        The answer is given whether anybody follows or not. After a lost connection, come back with the id of the
        last event you have.
        """
        given = parameters(request, FollowPlace)
        row = await unit(current_scope(), queries.get_session, session)
        if row is None or row.erased_at is not None:
            raise NotFound
        place = follow.Place(session, turn_id, given["attempt"], given["since"])
        response = StreamingHttpResponse(
            follow.stream(current_scope(), place, request.headers.get("Last-Event-ID", "")),
            content_type="text/event-stream",
        )
        response["Cache-Control"] = "no-cache"
        response["X-Accel-Buffering"] = "no"
        return response


class Stop(Endpoint):
    """The end of an answer before its time."""

    scopes = {"POST": CHAT}

    @described("stop_turn", tag="chat", by_id=True, takes=Nothing, gives={202: shapes.StoppingOut})
    def post(self, request: Request, session: UUID, turn_id: UUID) -> Response:
        """Stop an answer; what was written of it is kept."""
        body(request, Nothing)
        stopping = _wait(conduct.stop, session=session, turn_id=turn_id)
        return Response({"stopping": stopping}, status=202)


class Retry(Endpoint):
    """Another try at an answer."""

    scopes = {"POST": CHAT}
    costs = {"POST": "say"}

    @described(
        "retry_turn",
        tag="chat",
        by_id=True,
        takes=RetryIn,
        gives={
            201: shapes.TurnOut,
            200: OpenApiResponse(shapes.TurnOut, description="This attempt was followed by another before."),
        },
        errors={402: USED_UP, 409: BUSY},
    )
    def post(self, request: Request, session: UUID, turn_id: UUID) -> Response:
        """Answer the session's last message again, after the attempt you name failed or was interrupted."""
        given = body(request, RetryIn)
        following, began, since = _wait(
            conduct.retry, session=session, turn_id=turn_id, attempt=given["attempt"]
        )
        return Response(_turn(session, following, since), status=201 if began else 200)


class End(Endpoint):
    """The end of a session."""

    scopes = {"POST": CHAT}

    @described("end_session", tag="sessions", by_id=True, takes=Nothing, gives={200: shapes.EndedOut})
    def post(self, request: Request, session: UUID) -> Response:
        """End a session; an answer that is being given is stopped first. Its notes are written then."""
        body(request, Nothing)
        return Response({"ended": _wait(conduct.end, session=session)})


class Archive(Endpoint):
    """Putting a session out of the way."""

    scopes = {"POST": CHAT}

    @described(
        "archive_session",
        tag="sessions",
        by_id=True,
        takes=Nothing,
        gives={204: None},
        errors={409: "It is still open."},
    )
    def post(self, request: Request, session: UUID) -> HttpResponse:
        """Archive a closed session: it is listed apart, and takes no messages until it is taken out again."""
        body(request, Nothing)
        _refusable(actions.archive, session=session)
        return HttpResponse(status=204)


class Unarchive(Endpoint):
    """Taking a session out of the archive."""

    scopes = {"POST": CHAT}

    @described("unarchive_session", tag="sessions", by_id=True, takes=Nothing, gives={204: None})
    def post(self, request: Request, session: UUID) -> HttpResponse:
        """Take a session out of the archive."""
        body(request, Nothing)
        _refusable(actions.unarchive, session=session)
        return HttpResponse(status=204)


class Forgot(Endpoint):
    """Saying that something was forgotten."""

    scopes = {"POST": CHAT}

    @described("report_forgotten", tag="chat", by_id=True, takes=Nothing, gives={204: None})
    def post(self, request: Request, session: UUID) -> HttpResponse:
        """Say that the advisor forgot something it should have known. Only that is kept, and when."""
        body(request, Nothing)
        _refusable(actions.forgot, session=session)
        return HttpResponse(status=204)


class Leaving(Endpoint):
    """A page's goodbye."""

    scopes = {"POST": CHAT}
    costs = {"POST": "read"}

    @described("leave_session", tag="sessions", by_id=True, gives={204: None})
    def post(self, request: Request, session: UUID) -> HttpResponse:
        """Say that you are leaving: the session ends in ten minutes unless you come back. No body is read."""
        _session(session)
        actions.leave(session=session)
        return HttpResponse(status=204)


class Presence(Endpoint):
    """A page's good day."""

    scopes = {"POST": CHAT}
    costs = {"POST": "read"}

    @described("announce_presence", tag="sessions", takes=Nothing, gives={200: shapes.PresenceOut})
    def post(self, request: Request) -> Response:
        """Say that you are here, which takes back a goodbye; tells which session is open, if any."""
        body(request, Nothing)
        actions.stay()
        standing = queries.open_session()
        return Response({"session": str(standing.id) if standing else None})


def stream_address(session: UUID, turn_id: UUID, attempt: int, since: int) -> str:
    """Where an attempt is followed; `since` is the number of the turn's message in the log."""
    return f"{reverse('api-stream', args=[session, turn_id])}?attempt={attempt}&since={since}"


def _session(session: UUID) -> Row:
    row = queries.get_session(session)
    if row is None:
        raise NotFound
    return row


def _cursor(told: dict[str, Any]) -> dict[str, str]:
    return {"before": told["last_activity_at"], "before_id": told["id"]}


def _turn(session: UUID, which: Turn, since: int) -> dict[str, Any]:
    return {
        "session": str(session),
        "turn": str(which.id),
        "attempt": which.attempt,
        "stream": stream_address(session, which.id, which.attempt, since),
    }


def _part(request: Request, which: str, seq: int | None, limit: int) -> str | None:
    """The address of another part of the log; None when there is none."""
    return None if seq is None else f"{request.path}?{urlencode({which: seq, 'limit': limit})}"


def _wait[R](work: Callable[..., Coroutine[Any, Any, R]], **arguments: Any) -> R:
    """What the work gives; its refusals as problems."""
    return cast(R, _refusable(wait, work, **arguments))


def _refusable[R](work: Callable[..., R], *given: Any, **arguments: Any) -> R:
    """The same for work that waits for nothing."""
    try:
        return work(*given, **arguments)
    except actions.NotFound:
        raise NotFound from None
    except actions.Refusal as refusal:
        raise Problem(
            refusal.status, refusal.code.replace("_", "-"), refusal.text, headers=None, **refusal.extra
        ) from None
    except TurnRunning as running:
        turn_id = str(running.turn) if running.turn else None
        raise Problem(409, "turn-running", RUNNING, turn=turn_id) from None
