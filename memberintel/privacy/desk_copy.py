"""The page on which staff take a copy of everything of a customer's, for whoever cannot do it themselves."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods

from memberintel.privacy import export, openable, opening, sending
from memberintel.privacy.data_pages import BUSY
from memberintel.tenancy.context import Scope
from memberintel.tenancy.models import User
from memberintel.tenancy.staff import TOO_SHORT, NoReason
from memberintel.vault.errors import CannotOpen, KeyDestroyed


def urls() -> list[URLPattern]:
    """Below /admin/; behind the desk's gate like every page of it."""
    return [path("copy/<uuid:customer>/", admin.site.admin_view(take_copy), name="take_copy")]


@require_http_methods(["GET", "POST"])
def take_copy(request: HttpRequest, customer: UUID) -> HttpResponseBase:
    """Ask for the reason, then send the archive. A copy leaves the desk, so it takes the right to edit as well."""
    if not request.user.has_perms([opening.OPEN, opening.EDIT]):
        raise PermissionDenied
    whose = openable.of_customer(customer)
    if whose is None:
        raise Http404
    if request.method != "POST":
        return _page(request, whose)
    try:
        return _sent(request, whose)
    except NoReason:
        return _page(request, whose, problem=TOO_SHORT, status=400)
    except export.Busy:
        return _page(request, whose, problem=BUSY, status=503)
    except KeyDestroyed:
        raise
    except CannotOpen:
        return _page(
            request, whose, problem="Their key cannot be had, so there is no copy to take.", status=503
        )


def _sent(request: HttpRequest, whose: Scope) -> HttpResponseBase:
    """The archive, once a grant with the reason, the look and the copy are on record."""
    staff = cast(User, request.user)
    blocks = export.stream(whose)
    opening.ask(staff=staff, whose=whose, reason=request.POST.get("reason", ""))
    with opening.opened(staff=staff, whose=whose, what=f"copy {whose.customer_id}"):
        export.begin(by=staff.pk)
    opening.give_back(staff=staff, whose=whose)
    return sending.packed(blocks)


def _page(request: HttpRequest, whose: Scope, *, problem: str = "", status: int = 200) -> HttpResponse:
    person = User.objects.get(pk=str(whose.customer_id))
    context = {
        **admin.site.each_context(request),
        "title": f"Take a copy for {person.email}",
        "person": person,
        "problem": problem,
        "typed_reason": request.POST.get("reason", ""),
    }
    return render(request, "admin/copy.html", context, status=status)
