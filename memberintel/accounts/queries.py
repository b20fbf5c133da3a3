"""Reading about the customer of the current scope."""

from __future__ import annotations

from memberintel.accounts.domain import Person
from memberintel.accounts.models import Profile
from memberintel.vault.errors import CannotOpen


def person() -> Person:
    """The customer as a person; the defaults before they told us anything. A name that does not open is ""."""
    row = Profile.objects.first()
    if row is None:
        return Person()
    try:
        name = row.display_name
    except CannotOpen:
        name = ""
    return Person(name, row.time_zone, row.language)
