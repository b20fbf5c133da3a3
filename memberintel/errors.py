"""Errors as a person reads them: what is wrong and what to do, on a page or as a problem document."""

from __future__ import annotations

import sys

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from psycopg_pool import PoolTimeout

from memberintel.accounts.problems import NotFound, Problem, wants_problem
from memberintel.vault.errors import CannotOpen

NOT_FOUND = "There is nothing at this address, or it is not yours."


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400, or 413 when the body was too big."""
    if isinstance(exception, RequestDataTooBig):
        return answer(request, 413, "Too long", "What you sent is larger than this service accepts (2 MB).")
    return answer(
        request, 400, "That did not work", "The request could not be understood. Go back and try again."
    )


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403."""
    return answer(request, 403, "Not allowed", "Your account may not do this.")


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form's token did not fit, mostly because somebody signed in or out in another window."""
    return answer(
        request,
        403,
        "This page was too old",
        "You signed in or out in another window, or cookies are off. Go back, reload the page and try again; "
        "what you typed is still there.",
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404: the same bytes for what is not there and for what is somebody else's."""
    if wants_problem(request):
        return NotFound().response()
    return answer(request, 404, "Not found", NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 503 with the name of what is missing."""
    cause = sys.exc_info()[1]
    if isinstance(cause, OperationalError | InterfaceError | PoolTimeout):
        return answer(
            request,
            503,
            "The database cannot be reached",
            "Nothing you wrote before is lost. Try again in a minute. For whoever runs this server: check that "
            "PostgreSQL is up and DATABASE_URL_WEB points to it.",
            retry=True,
        )
    if isinstance(cause, CannotOpen):
        return answer(
            request,
            503,
            "Your data cannot be opened",
            "It is there, but the key to it is missing or wrong, and nothing will be written until it fits. For "
            "whoever runs this server: check MEMBERINTEL_KEK or MEMBERINTEL_KEK_FILE.",
            retry=True,
        )
    return answer(
        request,
        500,
        "Something broke on our side",
        "It has been recorded. What was saved before is safe. Go back and try again.",
        retry=True,
    )


def answer(
    request: HttpRequest, status: int, title: str, detail: str, *, retry: bool = False
) -> HttpResponse:
    """The error in the form the caller reads. Touches neither database nor session: both may be what failed."""
    headers = {"Retry-After": "30"} if status == 503 else {}
    if wants_problem(request):
        return Problem(status, title.lower().replace(" ", "-"), detail, headers=headers).response()
    page = render_to_string(
        "error.html", {"status": status, "title": title, "detail": detail, "retry": retry}
    )
    return HttpResponse(page, status=status, headers=headers)
