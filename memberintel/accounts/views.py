"""The start page, the settings, and the letters of a machine without mail."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memberintel.accounts import actions, letters, queries
from memberintel.accounts.access import signed_in
from memberintel.accounts.forms import PersonForm
from memberintel.tenancy.models import User


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """What the product is, to a stranger; a customer goes on to the conversation."""
    if request.user.is_authenticated:
        return redirect("chat" if request.user.tenant_id else "admin:index")
    return render(request, "accounts/welcome.html")


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def settings(request: HttpRequest) -> HttpResponse:
    """Display name, time zone, language."""
    form = PersonForm(request.POST or None, initial=asdict(queries.person()))
    if request.method == "POST" and form.is_valid():
        actions.save_person(form.person())
        messages.success(request, "Saved.")
        return redirect("settings")
    status = 400 if form.is_bound else 200
    return render(request, "accounts/settings.html", {"form": form, "place": "settings"}, status=status)


@require_POST
@signed_in
def sign_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End every sign-in of the person but this one."""
    user = cast(User, request.user)
    actions.sign_out_everywhere(user)
    update_session_auth_hash(request, user)
    messages.success(request, "Done. Every other device is signed out; this one is not.")
    return redirect("settings")


@require_safe
def mail(request: HttpRequest) -> HttpResponse:
    """The letters a machine without mail has written to files, for the person who sits at it."""
    if not letters.readable_by(request):
        raise Http404
    context = {"letters": letters.newest(), "folder": letters.folder()}
    response = render(request, "accounts/mail.html", context)
    response["Cache-Control"] = "no-store"
    return response
