"""Errors as problem documents (RFC 9457) for scripts and integrators."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, JsonResponse

API = "/api/"


def problem(
    status: int, detail: str, *, type: str = "about:blank", title: str = "", **more: object
) -> JsonResponse:
    """A problem document. `detail` is for a person: what is wrong and what to do. `more` are its extra members."""
    body = {
        "type": type,
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
    }
    return JsonResponse(body, status=status, content_type="application/problem+json")


def wants_problem(request: HttpRequest) -> bool:
    """Whether the caller is a script: everything under /api/ is answered in JSON."""
    return request.path_info.startswith(API)
