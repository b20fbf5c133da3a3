"""Wrap-ups as staff open and edit them on a customer's behalf, and the journal as they open it.

See memberintel.privacy.openable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.http import QueryDict

from memberintel.lib import moments
from memberintel.privacy.openable import Editor, Gone, NotSaved, Openable, of_customer, of_row
from wrapups import actions, forms, queries
from wrapups.journal import queries as journal
from wrapups.models import SessionLog
from wrapups.queries import WrapUp


def _show(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    return {"wrap_up": _wrap_up(row)}


def _form(row: UUID, typed: QueryDict | None) -> dict[str, Any]:
    found = _wrap_up(row)
    if typed is None:
        return {"form": forms.of_wrap_up(found), "standing": _standing(found)}
    return {"form": forms.of_post(typed), "standing": typed.get("standing", "")}


def _save(row: UUID, typed: QueryDict, staff: UUID, reason: str) -> str:
    SessionLog.objects.select_for_update().filter(id=row).first()  # whoever else saves waits for this to end
    found = _wrap_up(row)
    if typed.get("standing", "") != _standing(found):
        raise NotSaved(
            "This wrap-up was changed in the meantime. Nothing was saved yet: compare the two and save again.",
            status=409,
            fresh=found,
            standing=_standing(found),
        )
    try:
        actions.edit(row, forms.read(typed), by=staff)
    except actions.NotFound:
        raise Gone from None
    except actions.Empty:
        raise NotSaved("A wrap-up needs a summary.") from None
    except actions.TooLong as error:
        raise NotSaved(f"These are {error.words:,} words; at most {error.limit:,} fit.", status=413) from None
    return "Saved, on the customer's behalf. The advisor goes by it from the next session on."


def _wrap_up(row: UUID) -> WrapUp:
    found = queries.get_wrap_up(row)
    if found is None:
        raise Gone
    return found


def _standing(found: WrapUp) -> str:
    """Which edit stands: another one has another time."""
    return found.edited_at.isoformat() if found.edited_at else ""


wrap_up = Openable(
    "wrap_up",
    "Wrap-up",
    of_row(SessionLog),
    "wrapups/desk/wrap_up.html",
    _show,
    Editor("wrapups/desk/wrap_up_form.html", _form, _save),
)


# --- the journal -----------------------------------------------------------------------------------------

DAYS: Final = 20  # on a page


def _journal(row: UUID, asked: Mapping[str, str]) -> dict[str, Any]:
    where = journal.zone()
    found = journal.days_written(moments.day(asked.get("before", "")), where, DAYS + 1)
    days = [day for one in found[:DAYS] for day in journal.between(one, one, where)]
    return {"days": days, "older": found[DAYS - 1] if len(found) > DAYS else None, "where": where}


journal_days = Openable("journal", "Journal", of_customer, "wrapups/desk/journal.html", _journal)
