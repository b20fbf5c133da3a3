"""The log for machines: a line of JSON for each fact, and no more told than in the log for people."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from django.http import HttpRequest, HttpResponse

from memberintel.lib.logs import as_json, bound
from memberintel.metrics import Counting

SECRET = "our margin is nine percent"


def line(record: logging.LogRecord) -> dict[str, Any]:
    text = as_json().format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def record(message: str, *args: Any, **more: Any) -> logging.LogRecord:
    return logging.LogRecord(
        "sessions.turn", logging.WARNING, __file__, 1, message, args, more.get("exc_info")
    )


def test_a_line_has_time_level_logger_event_and_what_it_belongs_to() -> None:
    with bound(request="0123456789ab"):
        found = line(record("turn %s was cut\noff", 7))
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "event": "turn 7 was cut\noff",
        "level": "warning",
        "logger": "sessions.turn",
        "request": "0123456789ab",
    }


def test_of_an_exception_the_type_and_the_places_are_told() -> None:
    try:
        raise KeyError(SECRET)
    except KeyError:
        found = line(record("it failed", exc_info=sys.exc_info()))
    assert SECRET not in json.dumps(found)
    assert found["exception"][0] == "KeyError"
    assert __file__ in found["exception"][1]


def test_what_is_logged_for_a_request_names_it_and_nothing_after_it_does() -> None:
    seen: list[dict[str, Any]] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.extend([line(record("one")), line(record("two"))])
        return HttpResponse()

    request = HttpRequest()
    request.method = "GET"
    Counting(view)(request)
    assert seen[0]["request"] == seen[1]["request"]
    assert "request" not in line(record("afterwards"))
