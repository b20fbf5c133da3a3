"""Reading about the customer of the current scope."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db import connection

from memberintel.accounts.domain import Person, Token
from memberintel.accounts.models import ApiToken, Profile
from memberintel.tenancy.context import current_customer_id, current_tenant_id
from memberintel.vault.errors import CannotOpen
from memberintel.vault.fields import Sealed

# Read for every turn and every piece of owed work.
_PROFILE: Final = (
    "SELECT id, display_name, time_zone, language FROM profiles WHERE tenant_id = %s AND customer_id = %s"
)


def person() -> Person:
    """The customer as a person; the defaults before they told us anything. A name that does not open is ""."""
    with connection.cursor() as cursor:
        cursor.execute(_PROFILE, [current_tenant_id(), current_customer_id()])
        found = cursor.fetchone()
    if found is None:
        return Person()
    id_, sealed, zone, language = found
    held: Any = Sealed(sealed)
    try:
        name = Profile(id=id_, display_name=held).display_name
    except CannotOpen:
        name = ""
    return Person(name, zone, language)


def tokens() -> list[Token]:
    """The customer's tokens that were not revoked, newest first; expired ones among them."""
    return [as_token(row) for row in ApiToken.objects.filter(revoked_at=None).order_by("-id")]


def token(token_id: UUID) -> Token | None:
    """The token, unless it was revoked, or None."""
    row = ApiToken.objects.filter(id=token_id, revoked_at=None).first()
    return as_token(row) if row else None


def as_token(row: ApiToken) -> Token:
    """The row as a value. A name that does not open is ""."""
    try:
        name = row.name
    except CannotOpen:
        name = ""
    return Token(
        row.id,
        name,
        row.prefix,
        tuple(row.scopes.split()),
        row.created_at,
        row.expires_at,
        row.last_used_at,
    )
