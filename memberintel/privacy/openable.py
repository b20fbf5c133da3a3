"""What of a customer's content staff can open, app by app: settings list the values as `OPENABLE`.

Each app says in its `desk.py` how what it keeps is shown, and how it is edited on the customer's behalf. The
functions run in the customer's scope, under a grant and on record (`opening`), and never of themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.http import QueryDict
from django.utils.module_loading import import_string

from memberintel.privacy.models import StaffRequest
from memberintel.tenancy.context import Scope
from memberintel.tenancy.desk import SUPPORT
from memberintel.tenancy.models import User


class Gone(LookupError):
    """There is nothing with that id in the scope."""


class NotSaved(Exception):
    """An edit was refused: nothing was written. The text says why; `context` fills the form again."""

    def __init__(self, text: str, *, status: int = 400, **context: Any) -> None:
        super().__init__(text)
        self.text, self.status, self.context = text, status, context


@dataclass(frozen=True)
class Editor:
    """How it is edited on the customer's behalf.

    `form(row, typed)` is the context of `template`, filled from what stands, or from what was typed; the template
    has the fields alone. `save(row, typed, staff, reason)` writes and says what was done, in one sentence, or
    raises NotSaved; it must refuse what was made on a version that no longer stands. `file` names the field of a
    file, whose bytes are among what was typed as UTF-8 with "surrogateescape".
    """

    template: str
    form: Callable[[UUID, QueryDict | None], dict[str, Any]]
    save: Callable[[UUID, QueryDict, UUID, str], str]
    file: str = ""


@dataclass(frozen=True)
class Openable:
    """One kind of content. `kind` stands in addresses and in the audit, `words` on pages.

    `whose(row)` tells the owner's scope without opening anything, or None where there is no such row. `show(row,
    asked)` is the context of `template`; `asked` are the parameters of the address. It raises Gone.
    """

    kind: str
    words: str
    whose: Callable[[UUID], Scope | None]
    template: str
    show: Callable[[UUID, Mapping[str, str]], dict[str, Any]]
    editor: Editor | None = None


def of_customer(customer: UUID) -> Scope | None:
    """For content of which a customer has one: it is addressed by the customer's id."""
    found = User.objects.using(SUPPORT).filter(pk=customer, tenant__isnull=False).first()
    return Scope(found.tenant_id, found.pk) if found and found.tenant_id else None


def of_row(model: type[models.Model]) -> Callable[[UUID], Scope | None]:
    """For rows of a private table, addressed by their own id."""

    def whose(row: UUID) -> Scope | None:
        found = model._default_manager.using(SUPPORT).filter(pk=row).values_list("tenant_id", "customer_id")
        ids = found.first()
        return Scope(*ids) if ids else None

    return whose


@cache
def kinds() -> dict[str, Openable]:
    """All of them, by kind."""
    found: list[Openable] = [import_string(path) for path in settings.OPENABLE]
    return {each.kind: each for each in found}


def _reason(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    found = StaffRequest.objects.filter(pk=row).first()
    if found is None:
        raise Gone
    return {"request": found, "reason": found.reason}


request = Openable("request", "Request", of_row(StaffRequest), "admin/request.html", _reason)
"""Why staff ask for something that takes a second person."""
