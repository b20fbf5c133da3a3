"""The owners' pages of sites and their sources: add, rename, delete; connect, try, disconnect."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from brain.heartbeat import actions, queries
from brain.heartbeat.actions import Refused
from brain.heartbeat.forms import CONNECT, MemberPressForm, SiteForm, StripeForm
from brain.heartbeat.pages import trouble
from brain.heartbeat.queries import NotFound, SiteView
from brain.heartbeat.sources import Failed
from memberintel.accounts import queries as accounts
from memberintel.accounts.access import owner_required, signed_in

NAMES: Final = {"stripe": "Stripe", "memberpress": "MemberPress", "csv": "Uploaded files"}
PLACE: Final = {"place": "settings"}


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def sites(request: HttpRequest) -> HttpResponse:
    """All sites, and adding one."""
    form = SiteForm(request.POST or None, initial={"time_zone": accounts.person().time_zone})
    if request.method == "POST" and form.is_valid():
        try:
            made = actions.add_site(**form.cleaned_data)
        except Refused as refusal:
            form.add_error("name", str(refusal))
        else:
            messages.success(
                request, f"{made.name} is added. Connect a source of its numbers, or upload a file."
            )
            return redirect("site", made.id)
    context = {**PLACE, "sites": queries.sites(), "form": form}
    return render(request, "brain/sites.html", context, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def site(request: HttpRequest, site: UUID) -> HttpResponse:
    """One site: its name and zone, and its sources."""
    found = _site(site)
    form = SiteForm(request.POST or None, initial={"name": found.name, "time_zone": found.time_zone})
    if request.method == "POST" and form.is_valid():
        try:
            actions.change_site(site, **form.cleaned_data)
        except NotFound:
            raise Http404 from None
        except Refused as refusal:
            form.add_error("name", str(refusal))
        else:
            messages.success(request, "Saved.")
            return redirect("site", site)
    sources = [(NAMES[each.kind], each, trouble(each)) for each in found.sources]
    connected = {each.kind for each in found.sources if each.state != "disconnected"}
    context = {
        **PLACE,
        "site": found,
        "form": form,
        "sources": sources,
        "kinds": [(kind, NAMES[kind]) for kind in CONNECT if kind not in connected],
    }
    return render(request, "brain/site.html", context, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def delete(request: HttpRequest, site: UUID) -> HttpResponse:
    """Ask once, then delete a site with all its numbers."""
    found = _site(site)
    if request.method != "POST":
        return render(request, "brain/site_delete.html", {**PLACE, "site": found})
    try:
        actions.delete_site(site)
    except NotFound:
        raise Http404 from None
    messages.success(request, f"{found.name} is deleted, with all its numbers.")
    return redirect("sites")


@sensitive_post_parameters("key")
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def connect(request: HttpRequest, site: UUID, kind: str) -> HttpResponse:
    """Give a source what it is opened with. It is tried before anything is kept, and never shown again."""
    found = _site(site)
    if kind not in CONNECT:
        raise Http404
    form = CONNECT[kind](request.POST or None)
    if request.method != "POST":
        return _connect(request, found, kind, form)
    if not form.is_valid():
        return _connect(request, found, kind, form, status=400)
    try:
        actions.connect(site, kind, form.credentials())  # type: ignore[arg-type]
    except NotFound:
        raise Http404 from None
    except Failed as failure:
        form.add_error(None, f"{failure.message} Nothing was kept.")
        return _connect(request, found, kind, form, status=400)
    except Refused as refusal:
        form.add_error(None, str(refusal))
        return _connect(request, found, kind, form, status=409)
    messages.success(
        request, f"{NAMES[kind]} is connected. Its first numbers are on their way; that may take minutes."
    )
    return redirect("site", site)


@require_POST
@signed_in
@owner_required
def try_source(request: HttpRequest, site: UUID, source: UUID) -> HttpResponse:
    """Ask a source whether it can be read, and if so for its numbers."""
    try:
        found = queries.source(site, source)
        actions.try_again(site, source)
    except NotFound:
        raise Http404 from None
    except Failed as failure:
        messages.error(request, failure.message)
    else:
        messages.success(request, f"{NAMES[found.kind]} answers. What is new of its numbers is on its way.")
    return redirect("site", site)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def disconnect(request: HttpRequest, site: UUID, source: UUID) -> HttpResponse:
    """Ask once, then destroy the key of a source, and its numbers if that is wanted."""
    try:
        found, place = queries.source(site, source), _site(site)
        if request.method != "POST":
            context = {**PLACE, "site": place, "source": found, "name": NAMES[found.kind]}
            return render(request, "brain/disconnect.html", context)
        forget = "forget" in request.POST
        actions.disconnect(site, source, forget=forget)
    except NotFound:
        raise Http404 from None
    left = "Its numbers are deleted." if forget else "Its numbers so far are kept."
    messages.success(request, f"{NAMES[found.kind]} is disconnected. {left}")
    return redirect("site", site)


def _site(site: UUID) -> SiteView:
    try:
        return queries.site(site)
    except NotFound:
        raise Http404 from None


def _connect(
    request: HttpRequest, site: SiteView, kind: str, form: StripeForm | MemberPressForm, *, status: int = 200
) -> HttpResponse:
    context = {**PLACE, "site": site, "name": NAMES[kind], "kind": kind, "form": form}
    return render(request, "brain/connect.html", context, status=status)
