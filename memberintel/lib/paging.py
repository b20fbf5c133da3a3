"""The cursor of a list: the time and the id of the last entry of the page before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from memberintel.lib import moments


class HalfACursor(ValueError):
    """`before` and `before_id` go together."""


def check(before: datetime | None, before_id: UUID | None) -> None:
    """HalfACursor when only one half is given."""
    if (before is None) != (before_id is None):
        raise HalfACursor("give both `before` and `before_id`, or neither")


def read(given: Mapping[str, str]) -> tuple[datetime | None, UUID | None]:
    """The cursor in the parameters of an address, each half None where it is missing; ValueError if it is none."""
    before, before_id = given.get("before"), given.get("before_id")
    return (_moment(before) if before else None), (UUID(before_id) if before_id else None)


def address(before: datetime, before_id: UUID) -> str:
    """The parameters that point behind an entry."""
    return urlencode({"before": before.isoformat(), "before_id": before_id})


def _moment(given: str) -> datetime:
    moment = moments.read(given)
    if moment is None:
        raise ValueError("before is a moment with its time zone")
    return moment
