"""What every endpoint of the API stands on: who asks, in whose scope, what was sent, how an error is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, NoReturn, cast
from urllib.parse import urlencode

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memberintel.accounts import gate
from memberintel.accounts.problems import PROBLEM, Invalid, NotFound, Problem
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import give_back

SAFE = frozenset({"GET", "HEAD"})


class Endpoint(APIView):
    """An address of the API, for customers, in their scope; holds no transaction.

    `scopes` declares its methods: which scopes of a token allow each, any of them sufficing; (): no token does,
    one has to be signed in. `costs` says which limit a method counts against; by default `read` or `write`.
    """

    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    costs: ClassVar[Mapping[str, str]] = {}

    authentication_classes = ()  # the gate does it all: what DRF offers would read the database without a scope
    permission_classes = ()
    throttle_classes = ()
    parser_classes = (JSONParser,)  # for the description; `body` reads what was sent
    renderer_classes = (JSONRenderer,)
    metadata_class = None

    caller: gate.Caller

    @property
    def allowed_methods(self) -> list[str]:
        """The methods this address takes."""
        return list(self.scopes)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer, then leave the scope the gate has opened."""
        with ExitStack() as self._open:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let the caller in, or raise a Problem."""
        # There is one form of every answer, so what the caller would rather have is not asked.
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
        self.caller = self.admit(request._request)
        self._open.enter_context(scope(self.caller.scope))

    def admit(self, request: HttpRequest) -> gate.Caller:
        """Who asks, if they may, or a Problem."""
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in self.scopes:
            allowed = ", ".join(self.scopes)
            raise Problem(
                405,
                "method-not-allowed",
                f"Use {' or '.join(self.scopes)} here.",
                headers={"Allow": allowed},
            )
        kind = self.costs.get(method, "read" if method in SAFE else "write")
        return gate.admit(request, self.scopes[method], kind)

    def handle_exception(self, exc: Exception) -> Response:
        """The error as a problem document; what nobody expected goes up, to be recorded."""
        problem = explained(exc)
        if problem is None:
            raise exc
        return cast(Response, problem.response())

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Nothing of a customer's stays in a cache."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response.setdefault("Cache-Control", "no-store")
        return response


class Streaming(Endpoint):
    """An address whose GET is a coroutine that gives a streamed response: it may take minutes.

    It holds no thread and no connection meanwhile.
    """

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """The view, a coroutine function, with its class for whoever walks the addresses."""

        async def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            return await cls().answer(request, *args, **kwargs)

        view.cls, view.initkwargs = cls, initkwargs  # type: ignore[attr-defined]
        view.csrf_exempt = True  # type: ignore[attr-defined]  # the gate checks, unless a token was sent
        return view

    async def answer(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """As `dispatch`, on the event loop."""
        try:
            self.caller = await sync_to_async(self._admit)(request)
            with scope(self.caller.scope):
                return cast(HttpResponseBase, await self.get(request, *args, **kwargs))  # type: ignore[attr-defined]
        except Exception as error:
            problem = explained(error)
            if problem is None:
                raise
            return problem.response()

    def _admit(self, request: HttpRequest) -> gate.Caller:
        try:
            return self.admit(request)
        finally:
            give_back()  # the request's thread would keep its connection until the stream ends


def explained(error: Exception) -> Problem | None:
    """The problem an exception is told as; None for those nobody expects."""
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            return Invalid(list(_faults(error.detail)))
        case Http404() | exceptions.NotFound():
            return NotFound()
        case RequestDataTooBig():
            return _too_long()
        case _:
            return None


def _too_long() -> Problem:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return Problem(413, "body-too-long", f"The body may have {limit:,} bytes.", limit=limit)


def _faults(detail: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """(field, message) of everything in a validation error; `a.0.b` is field b of the first entry of a."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            here = place if name == "non_field_errors" else f"{place}.{name}".lstrip(".")
            yield from _faults(inner, here)
    elif isinstance(detail, list):
        for number, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list)
            yield from _faults(inner, f"{place}.{number}".lstrip(".") if nested else place)
    else:
        yield place or "body", str(detail)


# --- what endpoints do alike -----------------------------------------------------------------------------


def body(
    request: Request, form: type[serializers.Serializer[Any]], *, partial: bool = False
) -> dict[str, Any]:
    """The JSON body, checked; raises what becomes a 400 that names the field."""
    given = form(data=_sent(request._request), partial=partial)
    given.is_valid(raise_exception=True)
    return cast("dict[str, Any]", given.validated_data)


def _sent(request: HttpRequest) -> Any:
    """The body as a value. Not through DRF's parsers: they know no cap, and miss a body sent in chunks."""
    if request.content_type != "application/json":
        if request.headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in request.headers:
            return {}
        raise Problem(415, "unsupported-media-type", "Send JSON, as Content-Type: application/json.")
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    raw = request.read(limit + 1)
    if len(raw) > limit:
        raise _too_long()
    try:
        return json.loads(raw.decode() or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Problem(400, "malformed-json", "The body is not JSON.") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def parameters(request: HttpRequest | Request, form: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """The parameters of the address, checked; raises a Problem that names the one at fault."""
    given = form(data=request.GET.dict())
    try:
        given.is_valid(raise_exception=True)
    except exceptions.ValidationError as error:
        raise Invalid(list(_faults(error.detail)), "invalid-parameter") from None
    return cast("dict[str, Any]", given.validated_data)


def listed(
    request: Request, items: Sequence[Any], cursor: Callable[[Any], dict[str, str]], limit: int
) -> Response:
    """A page of at most `limit` of the items, with the address of the next if there are more.

    `cursor` gives the parameters that point behind an item.
    """
    shown = items[:limit]
    following = None
    if len(items) > limit:
        following = f"{request.path}?{urlencode({**request.GET.dict(), **cursor(shown[-1])})}"
    return Response({"items": shown, "next": following})


def wait[R](work: Callable[..., Coroutine[Any, Any, R]], **arguments: Any) -> R:
    """What the coroutine function gives. It goes on to its end also when the caller has hung up."""
    give_back()  # the work takes connections of its own; holding one meanwhile could starve it
    return cast(R, async_to_sync(_whole)(work, arguments))


_going: set[asyncio.Task[Any]] = set()


async def _whole(work: Callable[..., Coroutine[Any, Any, Any]], arguments: dict[str, Any]) -> Any:
    task = asyncio.ensure_future(work(**arguments))
    _going.add(task)
    task.add_done_callback(_going.discard)
    return await asyncio.shield(task)


# --- the description ---------------------------------------------------------------------------------------


class FaultOut(serializers.Serializer[Any]):
    """One thing that is wrong with what was sent."""

    field = serializers.CharField(help_text="Name of the field; `a.0.b` is field b of the first entry of a.")
    message = serializers.CharField()

    class Meta:
        ref_name = "Fault"


class ProblemOut(serializers.Serializer[Any]):
    """An error (RFC 9457). Some carry more members, as described where they occur."""

    type = serializers.CharField(help_text="Which error it is; stable.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What is wrong and what to do, for a person.")
    errors = FaultOut(  # type: ignore[assignment]  # DRF takes fields out of the class
        many=True, required=False, help_text="With 400: each field at fault."
    )

    class Meta:
        ref_name = "Problem"


USUAL: Mapping[int, str] = {
    401: "Nobody is signed in and no valid token was sent.",
    403: "The token lacks the scope, or the page's CSRF token does not fit.",
    429: "Too many requests in this minute; `Retry-After` says when to come back.",
    500: "Something broke on our side; it has been recorded.",
    503: "Something this service needs is away; `Retry-After` says when to come back.",
}
WITH_BODY: Mapping[int, str] = {
    400: "A field is missing, unknown or of the wrong type; `errors` names each.",
    413: "The body is too long.",
    415: "The body is not JSON.",
}
WITH_ID: Mapping[int, str] = {404: "There is no such thing, or it is somebody else's."}
WITH_PARAMETERS: Mapping[int, str] = {400: "A parameter is unknown or has no such value; `errors` names it."}


def described[F: Callable[..., Any]](
    operation: str,
    *,
    tag: str,
    gives: Mapping[int, Any],
    takes: Any = None,
    query: type[serializers.Serializer[Any]] | None = None,
    headers: tuple[OpenApiParameter, ...] = (),
    by_id: bool = False,
    errors: Mapping[int, str] | None = None,
    media_type: str = "application/json",
) -> Callable[[F], F]:
    """The method in the OpenAPI document, beside its docstring: what it takes, gives and refuses.

    `gives` has a serializer (None: no body) or an OpenApiResponse for each status.
    """
    refused = {
        **USUAL,
        **(WITH_BODY if takes else {}),
        **(WITH_ID if by_id else {}),
        **(WITH_PARAMETERS if query else {}),
        **(errors or {}),
    }
    responses: dict[Any, Any] = {
        (status, media_type) if what else status: what for status, what in gives.items()
    }
    responses |= {
        (status, PROBLEM): OpenApiResponse(ProblemOut, description=text)
        for status, text in sorted(refused.items())
    }

    def decorate(method: F) -> F:
        extend = extend_schema(
            operation_id=operation,
            tags=[tag],
            request=takes,
            parameters=[*([query] if query else []), *headers],
            responses=responses,
        )
        return extend(method)

    return decorate
