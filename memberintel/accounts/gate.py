"""Who makes a request of the API, and whether they may: a signed-in browser, or a script with a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import CSRFCheck

from memberintel.accounts import limits, tokens
from memberintel.accounts.models import ApiToken
from memberintel.accounts.problems import Problem
from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tier, User

USED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Caller:
    """A customer, and what their token allows; None for a browser, which may do everything."""

    user: User
    scope: Scope
    scopes: frozenset[str] | None = None

    @property
    def tier(self) -> Tier:
        """What the customer's tenant has paid for."""
        assert self.user.tenant is not None  # noqa: S101 (staff do not get here)
        return self.user.tenant.tier


def admit(request: HttpRequest, allowing: Sequence[str], kind: str) -> Caller:
    """The caller, when a token with one of the scopes `allowing` would do ((): no token does) and the limit for
    requests of that kind has room. Raises Problem: 401, 403, 429."""
    caller = _identify(request)
    if caller.scopes is not None:
        _check_scopes(caller.scopes, allowing)
    if wait := limits.spend(caller.user.pk, kind):
        raise Problem(
            429,
            "too-many-requests",
            f"That is more than this service takes from one customer in a minute. Try again in {wait} seconds.",
            headers={"Retry-After": str(wait)},
            retry_after=wait,
        )
    return caller


def _identify(request: HttpRequest) -> Caller:
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return _by_token(given.strip())
    user = request.user
    if not user.is_authenticated or not user.is_active:
        raise Problem(
            401,
            "not-signed-in",
            "Sign in, or send a token: Authorization: Bearer mi_…",
            headers={"WWW-Authenticate": 'Bearer realm="MemberIntel"'},
        )
    _check_origin(request)
    return Caller(user, _scope(user.tenant_id, user.pk))


def _scope(tenant: UUID | None, customer: UUID) -> Scope:
    if tenant is None:
        raise Problem(403, "no-customer", "This account is no customer's.")
    return Scope(tenant, customer)


def _check_origin(request: HttpRequest) -> None:
    """A browser sends its cookie along whoever made the page: what changes something needs the page's own token."""
    check = CSRFCheck(lambda _: HttpResponse())
    check.process_request(request)
    if check.process_view(request, None, (), {}):  # type: ignore[arg-type]  # it reads one attribute of the view
        raise Problem(
            403,
            "csrf-failed",
            "This was not sent by a page of ours that is up to date. Reload the page; a script uses a token.",
        )


def _by_token(given: str) -> Caller:
    refusal = Problem(
        401,
        "invalid-token",
        "This token is not valid: it is misspelt, has expired or was revoked. Make another in your settings.",
        headers={"WWW-Authenticate": 'Bearer realm="MemberIntel", error="invalid_token"'},
    )
    if not tokens.is_token(given) or (found := _owner(tokens.digest(given))) is None:
        raise refusal
    token, tenant, customer, scopes, expires_at, used_at = found
    now = clock.now()
    if expires_at is not None and expires_at <= now:
        raise refusal
    user = User.objects.select_related("tenant__tier").filter(id=customer, tenant=tenant, is_active=True)
    if (owner := user.first()) is None:
        raise refusal
    whose = _scope(tenant, customer)
    if used_at is None or used_at <= now - USED_EVERY:
        _mark_used(token, whose)
    return Caller(owner, whose, frozenset(scopes.split()))


def _owner(digest: bytes) -> tuple[UUID, UUID, UUID, str, Any, Any] | None:
    """Whose token it is: outside any scope, through the one function that may look."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT token, tenant, customer, scopes, expires_at, used_at FROM app.whose_token(%s)", [digest]
        )
        return cast("tuple[UUID, UUID, UUID, str, Any, Any] | None", cursor.fetchone())


def _mark_used(token: UUID, whose: Scope) -> None:
    now = clock.now()
    with scope(whose):
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY)
        ApiToken.objects.filter(stale, id=token).update(
            last_used_at=now.replace(minute=0, second=0, microsecond=0)
        )


def _check_scopes(held: frozenset[str], allowing: Sequence[str]) -> None:
    if not allowing:
        raise Problem(403, "sign-in-required", "No token may do this. Sign in with a browser.")
    if held.isdisjoint(allowing):
        raise Problem(
            403,
            "wrong-scope",
            f"This token may not do this: it needs the scope {' or '.join(allowing)}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{allowing[0]}"'},
            scopes=list(allowing),
        )
