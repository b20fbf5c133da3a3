"""What a log tells of an exception."""

from __future__ import annotations

import logging
import sys

from memberintel.lib.discretion import PlacesOnly

SECRET = "our margin is nine percent"


def _told() -> str:
    try:
        try:
            raise ValueError(SECRET)
        except ValueError as cause:
            raise KeyError(SECRET) from cause
    except KeyError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "it failed", None, sys.exc_info())
        return PlacesOnly().format(record)


def test_types_and_places_are_told_and_no_message() -> None:
    told = _told()
    assert SECRET not in told
    assert told.index("ValueError") < told.index("KeyError")
    assert f"{__file__}:" in told
    assert told.startswith("it failed")
