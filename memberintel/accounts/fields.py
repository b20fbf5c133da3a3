"""The fields bodies and parameters of the API are made of: strict about types, and with no others beside them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

from rest_framework import serializers

from memberintel.lib import moments
from memberintel.lib.text import clean

BIGGEST = 2**31 - 1


class Strict(serializers.Serializer[Any]):
    """A body or a set of parameters with these fields and no others."""

    default_error_messages = {"invalid": "This must be an object."}

    def to_internal_value(self, data: Any) -> Any:
        """The values, after fields nobody knows were refused."""
        if isinstance(data, Mapping) and (unknown := [str(name) for name in data if name not in self.fields]):
            raise serializers.ValidationError(
                {name[:80]: ["There is no such field here."] for name in unknown[:10]}
            )
        return super().to_internal_value(data)


class Text(serializers.CharField):
    """A text; what no database can hold is taken out of it, the rest stays as it was sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """The text without NUL, lone surrogates and control characters."""
        if not isinstance(data, str):
            self.fail("invalid")
        return clean(data)


class Flag(serializers.BooleanField):
    """True or false, and nothing that looks like it."""

    def to_internal_value(self, data: Any) -> bool:
        """The flag."""
        if not isinstance(data, bool):
            self.fail("invalid", input=str(data)[:40])
        return data


class Whole(serializers.IntegerField):
    """A whole number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_value": BIGGEST, **options})

    def to_internal_value(self, data: Any) -> int:
        """The number."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Id(serializers.UUIDField):
    """An id."""

    def to_internal_value(self, data: Any) -> UUID:
        """The id."""
        if not isinstance(data, str):
            self.fail("invalid", value="that")
        return super().to_internal_value(data)


class Moment(serializers.DateTimeField):
    """A moment with its time zone."""

    default_error_messages = {"invalid": "Give a moment with its time zone, such as 2026-07-21T16:05:00Z."}

    def to_internal_value(self, value: Any) -> datetime:
        """The moment."""
        found = moments.read(value) if isinstance(value, str) else None
        if found is None:
            self.fail("invalid")
        return found


NO_DAY = f"Give a day as YYYY-MM-DD, from {moments.FIRST_DAY.year} to {moments.LAST_DAY.year}."


class Day(serializers.DateField):
    """A day as YYYY-MM-DD, and nothing that looks like it."""

    default_error_messages = {"invalid": NO_DAY}

    def to_internal_value(self, value: Any) -> date:
        """The day."""
        day = moments.day(value) if isinstance(value, str) else None
        if day is None:
            self.fail("invalid")
        return day


class Page(Strict):
    """Which part of a list: after the entry whose two values these are, at most `limit` entries."""

    before = Moment(required=False, help_text="Time of the last entry you have.")
    before_id = serializers.UUIDField(required=False, help_text="Id of the last entry you have.")
    limit = serializers.IntegerField(min_value=1, max_value=100, default=30)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Half a cursor points nowhere."""
        for one, other in (("before", "before_id"), ("before_id", "before")):
            if one in attrs and other not in attrs:
                raise serializers.ValidationError({other: [f"Give both {one} and {other}, or neither."]})
        return attrs
