"""What a person may do to their account."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memberintel.accounts import queries, tokens
from memberintel.accounts.domain import Person, Token
from memberintel.accounts.models import ApiToken, Profile
from memberintel.lib import clock, text
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, Tier, User

FREE = "free"
TOKENS_AT_MOST = 50


class TooManyTokens(Exception):
    """The customer has as many tokens as anybody can keep track of."""


@dataclass(frozen=True)
class NewToken:
    """A token just made, and the only time it is known in full."""

    token: Token
    secret: str


def found_tenant(user: User) -> Tenant:
    """A tenant of its own, on the free tier, for somebody who has just signed up; they own it.

    `user` need not be saved yet; it is saved here, so that there is never one without the other.
    """
    with transaction.atomic():
        tenant = Tenant.objects.create(tier=Tier.objects.get(key=FREE))
        user.tenant = tenant
        user.is_owner = True
        user.save()
    return tenant


def save_person(person: Person) -> None:
    """Keep what the customer of the current scope told us about themselves."""
    with transaction.atomic():
        row = Profile.objects.select_for_update().first() or Profile()
        row.display_name = text.clean(person.display_name).strip()
        row.time_zone = person.time_zone
        row.language = person.language
        row.save()


def sign_out_everywhere(user: User) -> None:
    """End every sign-in of that person and revoke their tokens; `user` is brought up to date."""
    User.objects.filter(pk=user.pk).update(sign_outs=F("sign_outs") + 1)
    user.refresh_from_db(fields=["sign_outs"])
    revoke_tokens_of(user)


def revoke_tokens_of(user: User) -> None:
    """From now on no token of that person lets anybody in: whoever made them may not have been the person."""
    if user.tenant_id is None:
        return
    with scope(Scope(user.tenant_id, user.pk)):
        ApiToken.objects.filter(revoked_at=None).update(revoked_at=clock.now())


def after_password_reset(user: User, **kwargs: Any) -> None:
    """Somebody who proved their address starts anew: see `revoke_tokens_of`."""
    revoke_tokens_of(user)


def make_token(*, name: str, scopes: Iterable[str], expires_at: datetime | None = None) -> NewToken:
    """A personal token for the customer of the current scope. `scopes` are keys of `tokens.SCOPES`.

    Raises TooManyTokens.
    """
    if len(queries.tokens()) >= TOKENS_AT_MOST:
        raise TooManyTokens
    secret = tokens.new()
    row = ApiToken(
        name=text.clean(name).strip(),
        prefix=secret[: tokens.SHOWN],
        digest=tokens.digest(secret),
        scopes=" ".join(scope for scope in tokens.SCOPES if scope in set(scopes)),
        expires_at=expires_at,
    )
    row.save(force_insert=True)
    return NewToken(queries.as_token(row), secret)


def revoke_token(token: UUID) -> bool:
    """From now on nobody gets in with it; False when there is no such token."""
    return bool(ApiToken.objects.filter(id=token, revoked_at=None).update(revoked_at=clock.now()))
