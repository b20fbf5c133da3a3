"""What every API route shares: who asks, what the body must look like, and how an error is told (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, cast

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from pydantic import BaseModel, ValidationError

from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.unit import give_back

PROBLEM = "application/problem+json"


class Problem(Exception):
    """Ends a request with a problem document; `extra` members stand beside the standard ones."""

    def __init__(self, status: int, code: str, detail: str, **extra: Any) -> None:
        self.status, self.code, self.detail, self.extra = status, code, detail, extra
        super().__init__(code)

    def response(self) -> JsonResponse:
        """The problem as a response."""
        body = {
            "type": f"/problems/{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **self.extra,
        }
        return JsonResponse(body, status=self.status, content_type=PROBLEM)


class NotFound(Problem):
    """The same answer for what does not exist and for what is somebody else's."""

    def __init__(self) -> None:
        super().__init__(404, "not-found", "There is nothing here.")


def wants_problem(request: HttpRequest) -> bool:
    """Whether the caller is a script: everything under /api/ is answered with documents, not pages."""
    return request.path_info.startswith("/api/")


type View[**P] = Callable[Concatenate[HttpRequest, P], Coroutine[Any, Any, HttpResponseBase]]


def api[**P](*methods: str) -> Callable[[View[P]], View[P]]:
    """An async API view for signed-in customers, in their scope; refusals and Problems become documents."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        async def answer(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            try:
                who = await _customer(request, methods)
                with scope(who):
                    return await view(request, *args, **kwargs)
            except Problem as problem:
                response = problem.response()
                if problem.status == HTTPStatus.METHOD_NOT_ALLOWED:
                    response["Allow"] = ", ".join(methods)
                return response

        return cast("View[P]", answer)

    return decorate


async def _customer(request: HttpRequest, methods: tuple[str, ...]) -> Scope:
    if request.method not in methods:
        raise Problem(405, "method-not-allowed", f"Use {' or '.join(methods)} here.")
    user = await request.auser()
    await sync_to_async(give_back)()
    if not user.is_authenticated or not user.is_active:
        raise Problem(401, "not-signed-in", "Sign in first.")
    if user.tenant_id is None:
        raise Problem(403, "no-customer", "This account is no customer's.")
    return Scope(user.tenant_id, user.id)


def body[M: BaseModel](request: HttpRequest, model: type[M]) -> M:
    """The JSON body as `model`; a 400 that names the field otherwise."""
    try:
        given = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise Problem(400, "malformed-json", "The body is not JSON.") from None
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> Problem:
    fields = [
        {"field": ".".join(str(part) for part in fault["loc"]) or "body", "message": fault["msg"]}
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    named = "; ".join(f"{fault['field']}: {fault['message']}" for fault in fields)
    return Problem(400, "invalid-body", named, errors=fields)
