"""Rows as lines of an archive and back: every column by its name, sealed ones opened, ids and times as text."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import models

from memberintel.tenancy.models import PrivateModel
from memberintel.vault.errors import Damaged
from memberintel.vault.fields import SealedField, SealedJSON, SealedText

OWNERS: Final = frozenset({"tenant_id", "customer_id"})
UNREADABLE: Final = "unreadable"
NOT_READABLE_TEXT: Final = "(this could not be opened)"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Unfit(ValueError):
    """A line does not fit its table; the text says why, for a person."""


def private_tables() -> dict[str, type[PrivateModel]]:
    """Every table of customers' own content by its name, in an order in which they may be filled."""
    found = [model for model in apps.get_models() if issubclass(model, PrivateModel)]
    first = {"accounts": 0, "privacy": 1, "brain": 2, "chat": 3}
    found.sort(key=lambda model: first.get(model._meta.app_label, 9))
    return {model._meta.db_table: model for model in found}


def columns(model: type[models.Model], hidden: Collection[str] = ()) -> Iterator[models.Field[Any, Any]]:
    """The columns of a line: all but the owner's ids and those hidden."""
    for field in model._meta.concrete_fields:
        if field.attname not in OWNERS and field.attname not in hidden:
            yield field


def as_line(row: models.Model, hidden: Collection[str] = ()) -> dict[str, Any]:
    """The row; a sealed value that is damaged is null, and named under `unreadable`."""
    line: dict[str, Any] = {}
    damaged: list[str] = []
    for field in columns(type(row), hidden):
        try:
            line[field.attname] = plain(getattr(row, field.attname))
        except Damaged:
            line[field.attname] = None
            damaged.append(field.attname)
    if damaged:
        line[UNREADABLE] = damaged
    return line


def plain(value: Any) -> Any:
    """The value as JSON holds it."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case bytes() | memoryview():
            return bytes(value).hex()
        case tuple():
            return list(value)
        case _:
            return value


class Renamer:
    """New ids for old: the same one for the same old one within an import, and nobody else's.

    The time in an id stays, so that what was in order stays in order. `known` are ids with a given new one; `words`
    are other names that change, with their new ones.
    """

    def __init__(self, known: Mapping[UUID, UUID]) -> None:
        self._known, self._salt = dict(known), secrets.token_bytes(32)
        self.words: dict[str, str] = {}

    def id(self, old: UUID) -> UUID:
        """The new id."""
        if old in self._known:
            return self._known[old]
        tail = bytearray(hmac.digest(self._salt, old.bytes, hashlib.sha256)[:8])
        tail[0] = tail[0] & 0x3F | 0x80
        return UUID(bytes=old.bytes[:8] + bytes(tail))

    def inside(self, value: Any) -> Any:
        """The value with every text in it that is an id or such a word renamed, whole texts only."""
        match value:
            case str() if value in self.words:
                return self.words[value]
            case str() if _UUID.fullmatch(value):
                return str(self.id(UUID(value)))
            case list():
                return [self.inside(inner) for inner in value]
            case dict():
                return {key: self.inside(inner) for key, inner in value.items()}
            case _:
                return value


def from_line(
    model: type[models.Model], line: Mapping[str, Any], renamer: Renamer, hidden: Collection[str] = ()
) -> models.Model:
    """The row a line describes, under new ids, for the customer of the current scope, not saved; Unfit when it does
    not fit."""
    wanted = {field.attname: field for field in columns(model, hidden)}
    damaged = line.get(UNREADABLE, [])
    if not isinstance(damaged, list) or not set(map(str, damaged)) <= set(wanted):
        raise Unfit(f"`{UNREADABLE}` must list columns")
    if missing := sorted(set(wanted) - set(line)):
        raise Unfit(f"`{missing[0]}` is missing")
    if unknown := sorted(set(line) - set(wanted) - {UNREADABLE}):
        raise Unfit(f"`{unknown[0]}` is not known")
    row = model()
    for name, field in wanted.items():
        value = _stand_in(field) if name in damaged else line[name]
        setattr(row, name, _cleaned(field, value, row, renamer))
    return row


def _stand_in(field: models.Field[Any, Any]) -> Any:
    """What takes the place of a value that could not be opened when it was taken out."""
    return NOT_READABLE_TEXT if isinstance(field, SealedText) else []


def _cleaned(field: models.Field[Any, Any], value: Any, row: models.Model, renamer: Renamer) -> Any:
    if value is None:
        if not field.null:
            raise Unfit(f"`{field.attname}` is empty")
        return None
    if isinstance(field, SealedField):
        if isinstance(field, SealedText) and not isinstance(value, str):
            raise Unfit(f"`{field.attname}` must be text")
        return (
            renamer.inside(_storable(value, field))
            if isinstance(field, SealedJSON)
            else _storable(value, field)
        )
    if isinstance(value, float | dict | list) and not isinstance(field, models.JSONField | models.FloatField):
        raise Unfit(f"`{field.attname}` has the wrong type")
    try:
        empty = value in ("", [], {}) and not (field.choices and not field.blank)
        cleaned = field.to_python(value) if empty else field.clean(value, row)  # `clean` is for forms
    except ValidationError as error:
        raise Unfit(f"`{field.attname}`: {' '.join(error.messages)}") from None
    if isinstance(cleaned, UUID):
        return renamer.id(cleaned)
    return renamer.inside(_storable(cleaned, field)) if isinstance(field, models.JSONField) else cleaned


def _storable(value: Any, field: models.Field[Any, Any]) -> Any:
    """The value, if it can be stored: JSON may escape what is no character."""
    if not storable(value):
        raise Unfit(f"`{field.attname}` has characters that cannot be stored")
    return value


def storable(value: Any) -> bool:
    """Whether no text in the value has NUL or half of a character."""
    match value:
        case str():
            return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
        case list():
            return all(storable(inner) for inner in value)
        case dict():
            return all(storable(key) and storable(inner) for key, inner in value.items())
        case _:
            return True
