"""The page on which staff have a customer erased: one asks, a second person decides, then it is carried out."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods

from memberintel.privacy import erase, openable, requests, tasks
from memberintel.privacy.models import StaffRequest
from memberintel.privacy.requests import DECISIONS, Refused
from memberintel.tenancy.context import Scope
from memberintel.tenancy.models import User
from memberintel.tenancy.staff import TOO_SHORT, NoReason

ASK = "privacy.ask_erasure"
_DONE = {
    "approved": "Approved. Nothing is erased until it is carried out, below.",
    "declined": "Declined: nothing will be erased.",
    "withdrawn": "Withdrawn: nothing will be erased.",
}


def urls() -> list[URLPattern]:
    """Below /admin/; behind the desk's gate like every page of it."""
    return [path("erase/<uuid:customer>/", admin.site.admin_view(erase_customer), name="ask_erasure")]


@require_http_methods(["GET", "POST"])
def erase_customer(request: HttpRequest, customer: UUID) -> HttpResponse:
    """Where the erasure of a customer stands, and its next step: to ask, to decide, to carry it out."""
    if not request.user.has_perm(ASK):
        raise PermissionDenied
    whose = openable.of_customer(customer)
    if whose is None:
        raise Http404
    if request.method != "POST":
        return _page(request, whose)
    try:
        said = _acted(request, whose)
    except NoReason:
        return _page(request, whose, problem=TOO_SHORT, status=400)
    except (Refused, erase.Refused) as refusal:
        return _page(request, whose, problem=refusal.text, status=409)
    messages.success(request, said)
    return redirect("admin:ask_erasure", customer)


def _acted(request: HttpRequest, whose: Scope) -> str:
    """Do what was posted; what to say of it. Raises NoReason, Refused."""
    staff, act, reason = cast(User, request.user), request.POST.get("act"), request.POST.get("reason", "")
    if act == "erase":
        return _carried_out(request, whose)
    if act not in DECISIONS:
        requests.ask_erasure(staff=staff, whose=whose, reason=reason)
        return "Asked for. A second person has to approve it; until then nothing is erased."
    asked = requests.open_for(whose) or (requests.approved(whose) if act == "withdrawn" else None)
    if asked is None or str(asked.pk) != request.POST.get("request"):
        raise Refused("This has been decided already.")
    requests.decide(asked.pk, act, staff=staff, whose=whose, reason=reason)
    return _DONE[act]


def _carried_out(request: HttpRequest, whose: Scope) -> str:
    """Begin the erasure that two people want, once the address is typed: the last step that can be left."""
    asked = requests.approved(whose)
    if asked is None or str(asked.pk) != request.POST.get("request"):
        raise Refused("A second person has not approved this.")
    if request.POST.get("email", "").strip().lower() != _person(whose).email:
        raise Refused("That is not their address. Nothing was erased.")
    try:
        erase.begin(whose, by=cast(User, request.user).pk, request=asked.pk)
    except erase.LastOwner:
        raise Refused(
            "They are the only owner, and colleagues are still there: one of them has to be made an owner first."
        ) from None
    tasks.nudge()
    return "It is being erased: they are signed out, their key goes first, then every row."


def _person(whose: Scope) -> User:
    return User.objects.get(pk=str(whose.customer_id))


def _page(request: HttpRequest, whose: Scope, *, problem: str = "", status: int = 200) -> HttpResponse:
    asked = requests.open_for(whose)
    approved = None if asked else requests.approved(whose)
    person, begun = _person(whose), erase.of_customer(whose)
    context = {
        **admin.site.each_context(request),
        "title": f"Erase {person.email}",
        "person": person,
        "asked": asked,
        "own": request.user.pk in _own(asked or approved),
        "approved": approved,
        "people": _people(asked or approved),
        "begun": begun,
        "problem": problem,
        "typed_reason": request.POST.get("reason", ""),
    }
    return render(request, "admin/erase.html", context, status=status)


def _own(row: StaffRequest | None) -> tuple[UUID | None, ...]:
    """Who may withdraw it."""
    return (row.asked_by, row.decided_by) if row else ()


def _people(row: StaffRequest | None) -> dict[str, str]:
    """The addresses of who asked and who decided."""
    if row is None:
        return {}
    found = User.objects.in_bulk([one for one in (row.asked_by, row.decided_by) if one])
    return {
        name: found[one].email
        for name, one in (("asked", row.asked_by), ("decided", row.decided_by))
        if one in found
    }
