"""Every app that keeps something about a customer takes part in showing, moving and destroying it.

Settings list the modules as `PRIVACY_PARTICIPANTS`. A module may define any of the functions named here; each is
called in the customer's scope:

`forget_session(session: UUID) -> dict[str, int]`: delete what is kept about a session that is being erased, inside
the transaction that erases it; gives counts by what was deleted. It deletes what stands for the session (notes, a
day's entry) with every copy of it in prompts, and keeps what has a life of its own.

`left_from_session(session: UUID) -> list[Left]`: what came out of the session and stays when it is deleted, because
it has a life of its own; shown beside the deletion, before and after it, each with a way to delete it too.

`erase() -> dict[str, int]`: for a customer whose key is destroyed, delete what no sweep over the tables deletes;
counts by what was deleted. Rows of every table go afterwards by themselves, see `memberintel.privacy.reach`.

`purge(kind: str, before: datetime) -> Iterator[dict[str, int]]`: delete what is of that kind (`events`, `wrap_ups`,
`journal`, `memory`) and was last touched before then, a day ago or longer; gives counts after each piece, which is a
transaction of its own. What somebody else deleted meanwhile is none of its business. `past(kind, before) ->
dict[str, int]` tells what it would delete.

`expire_session(session: UUID) -> None`: the words of a session are being deleted because they are too old: what was
never made of them never will be. Called before the session's row is locked.

`told() -> Told`: a part of the privacy page, for the customer in scope.

An archive holds every table of customers' own content row by row, also one that is new, unless a module says else:
`LEFT_OUT` names tables it does not hold so, `HIDDEN` columns by table, `SHARED` tables of the tenant that each of its
customers takes along. `export(archive: Archive) -> None` writes what a person reads, and what needs a form of its own.
On the way back `restored(row, renamer)` may change a row before it is saved, `restore(table, line, renamer)` takes the
lines of a table that is LEFT_OUT, and `restored_all() -> str` says what is wrong in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any
from uuid import UUID

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Left:
    """Something that stays when its session goes. `label` says what it is, in words; a POST without fields to
    `address` (a page of the product) deletes it."""

    label: str
    text: str
    id: UUID
    address: str


@dataclass(frozen=True, slots=True)
class Told:
    """A part of the privacy page: a template, which finds the context as `part.context`, and `owner`: whether its
    reader is one."""

    template: str
    context: dict[str, Any]


def taking_part(name: str) -> list[Callable[..., Any]]:
    """The function `name` of every participant that has one, in the order of the settings."""
    return [getattr(module, name) for module in _modules() if hasattr(module, name)]


def forget_session(session: UUID) -> dict[str, int]:
    """Have every participant forget the session; counts by what was deleted."""
    counts: Counter[str] = Counter()
    for forget in taking_part("forget_session"):
        counts.update(forget(session))
    return dict(counts)


def expire_session(session: UUID) -> None:
    """Tell every participant that the session's words are too old and go."""
    for expire in taking_part("expire_session"):
        expire(session)


def left_from_session(session: UUID) -> list[Left]:
    """What every participant keeps of a session that is deleted."""
    return [left for offered in taking_part("left_from_session") for left in offered(session)]


def left_out() -> frozenset[str]:
    """Tables of customers' content that an archive does not hold, or not row by row."""
    return frozenset(table for module in _modules() for table in getattr(module, "LEFT_OUT", ()))


def hidden() -> dict[str, frozenset[str]]:
    """Columns an archive does not hold, by table."""
    found: dict[str, frozenset[str]] = {}
    for module in _modules():
        for table, names in getattr(module, "HIDDEN", {}).items():
            found[table] = found.get(table, frozenset()) | frozenset(names)
    return found


def shared() -> frozenset[str]:
    """Tables of the tenant that the archive of each of its customers holds."""
    return frozenset(table for module in _modules() for table in getattr(module, "SHARED", ()))


def _modules() -> list[ModuleType]:
    return [import_module(path) for path in settings.PRIVACY_PARTICIPANTS]
