"""How an error is told to a script: a problem document (RFC 9457), always with a sentence for a person."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse

PROBLEM = "application/problem+json"


class Problem(Exception):
    """Ends a request with a problem document; `extra` members stand beside the standard ones."""

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any
    ) -> None:
        self.status, self.code, self.detail = status, code, detail
        self.headers, self.extra = dict(headers or {}), extra
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
        return JsonResponse(body, status=self.status, content_type=PROBLEM, headers=self.headers)


class NotFound(Problem):
    """The same answer for what does not exist and for what is somebody else's."""

    def __init__(self) -> None:
        super().__init__(404, "not-found", "There is nothing here.")


class Invalid(Problem):
    """What was sent does not fit; each of `faults` is (field, what is wrong with it)."""

    def __init__(self, faults: list[tuple[str, str]], code: str = "invalid-body") -> None:
        named = "; ".join(f"{field}: {message}" for field, message in faults)
        errors = [{"field": field, "message": message} for field, message in faults]
        super().__init__(400, code, named, errors=errors)


def wants_problem(request: HttpRequest) -> bool:
    """Whether the caller is a script: everything under /api/ is answered with documents, not pages."""
    return request.path_info.startswith("/api/")
