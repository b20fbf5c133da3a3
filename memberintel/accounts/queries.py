"""Reading about the customer of the current scope."""

from __future__ import annotations

from uuid import UUID

from memberintel.accounts.domain import Person, Token
from memberintel.accounts.models import ApiToken, Profile
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
