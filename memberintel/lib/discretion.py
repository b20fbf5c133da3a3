"""What a log must not tell: links that let their holder in, and what an exception quotes of a text."""

from __future__ import annotations

import logging
import re
from traceback import walk_tb
from types import TracebackType

_LINK = re.compile(r"(/invitations/|/accounts/confirm-email/|/accounts/password/reset/key/)[^/\s]+")


class HideLinks(logging.Filter):
    """Takes what opens something out of the addresses in a record: a link stands in it whole otherwise."""

    def filter(self, record: logging.LogRecord) -> bool:
        """The record goes on, without it."""
        told = record.getMessage()
        if (kept := _LINK.sub(r"\1…", told)) != told:
            record.msg, record.args = kept, None
        return True


type _Told = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class PlacesOnly(logging.Formatter):
    """Tells of an exception its type and the places it passed, and of those it came from.

    Its message stays out: that of a database or a model may hold what a person wrote.
    """

    def formatException(self, ei: _Told) -> str:  # noqa: N802 (the name is logging's)
        """The types and places, one a line, the first cause first."""
        parts: list[str] = []
        error: BaseException | None = ei[1]
        while error is not None:
            parts.append(_places(error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n".join(reversed(parts))


def _places(error: BaseException) -> str:
    places = [
        f"  {frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    return "\n".join([type(error).__qualname__, *places])
