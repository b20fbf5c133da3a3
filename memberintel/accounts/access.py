"""Who may see a page, and for whom its work is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone

from memberintel.accounts import colleagues, queries
from memberintel.tenancy.context import NoScope, Scope, scope
from memberintel.tenancy.models import Tenant, Tier, User
from memberintel.tenancy.unit import give_back

type View = Callable[..., HttpResponseBase]
type AsyncView = Callable[..., Awaitable[HttpResponseBase]]


def signed_in[V: Callable[..., Any]](view: V) -> V:
    """The view runs for the person who is signed in, in their scope and (if sync) their time zone.

    Nobody signed in: to the sign-in page. Staff belong to no tenant and go to the support desk. The API has a
    gate of its own, `memberintel.accounts.gate`.
    """
    guarded: Any = _async(cast(AsyncView, view)) if iscoroutinefunction(view) else _sync(cast(View, view))
    declare(guarded, "customer")
    return cast(V, guarded)


def declare(guarded: Any, rule: str) -> None:
    """Write on a view which rule it keeps: tests try every address by what its view declares, in order."""
    guarded.rules = (rule, *getattr(guarded, "rules", ()))


def scope_of(user: User) -> Scope:
    """The scope of a customer's own work; NoScope for staff, who belong to no tenant."""
    if user.tenant_id is None:
        raise NoScope("a member of staff has no content of their own")
    return Scope(user.tenant_id, user.pk)


def tier_of(request: HttpRequest) -> Tier:
    """What the person's tenant has paid for."""
    return cast(Tenant, cast(User, request.user).tenant).tier


def tier_required(right: str, *, feature: str, explanation: str) -> Callable[[View], View]:
    """The view is for tiers with `right` (a flag of Tier); others see a page that says so. Under `signed_in`."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            tier = tier_of(request)
            if getattr(tier, right):
                return view(request, *args, **kwargs)
            context = {"feature": feature, "explanation": explanation, "tier": tier, "place": "wrap-ups"}
            status = 200 if request.method in {"GET", "HEAD"} else 403
            return render(request, "accounts/upgrade.html", context, status=status)

        declare(guarded, "tier")
        return guarded

    return decorate


def owner_required(view: View) -> View:
    """The view is for owners of the tenant; colleagues see a page that says so and whom to ask. Under `signed_in`."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if cast(User, request.user).is_owner:
            return view(request, *args, **kwargs)
        return render(request, "accounts/owners_only.html", {"owners": colleagues.owners()}, status=403)

    declare(guarded, "owner")
    return guarded


def _sync(view: View) -> View:
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = request.user
        if refusal := _refusal(request, user):
            return refusal
        with scope(scope_of(cast(User, user))), _local_time(request):
            return _uncached(view(request, *args, **kwargs))

    return guarded


def _async(view: AsyncView) -> AsyncView:
    @wraps(view)
    async def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = await request.auser()
        await sync_to_async(give_back)()
        if refusal := _refusal(request, user):
            return refusal
        with scope(scope_of(cast(User, user))):
            return _uncached(await view(request, *args, **kwargs))

    return guarded


def _uncached(response: HttpResponseBase) -> HttpResponseBase:
    """Nothing of a customer's stays behind on a computer others use."""
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _refusal(request: HttpRequest, user: Any) -> HttpResponseBase | None:
    if not user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if user.tenant_id is None:
        return redirect("admin:index")
    return None


@contextmanager
def _local_time(request: HttpRequest) -> Iterator[None]:
    person = queries.person()
    request.person = person  # type: ignore[attr-defined]  # the menu greets by it
    with timezone.override(person.zone):
        yield
