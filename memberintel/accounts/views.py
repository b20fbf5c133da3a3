"""The start page and the settings."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from memberintel.accounts import actions, queries
from memberintel.accounts.access import signed_in
from memberintel.accounts.forms import PersonForm


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
