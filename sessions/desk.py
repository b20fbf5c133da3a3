"""What was said in a session, as staff open it: see memberintel.privacy.openable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from memberintel.privacy.openable import Gone, Openable, of_row
from sessions import queries
from sessions.models import Session

LINES: Final = 100  # on a page


def _show(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    found = queries.get_session(row)
    if found is None:
        raise Gone
    lines = queries.transcript_lines(row)
    given = asked.get("page", "1")
    last = max((len(lines) + LINES - 1) // LINES, 1)
    page = min(max(int(given) if given.isdecimal() and len(given) < 7 else 1, 1), last)
    return {
        "title": found.title or "",
        "session": found,
        "lines": lines[(page - 1) * LINES : page * LINES],
        "page": page,
        "last": last,
    }


session = Openable("session", "Session", of_row(Session), "sessions/desk/session.html", _show)
