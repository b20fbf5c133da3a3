"""The page on which an owner says whether sessions go to the external memory."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from memberintel.accounts.access import owner_required, signed_in
from memberintel.tenancy.models import User
from wrapups.handover import actions, queries


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def external_memory(request: HttpRequest) -> HttpResponse:
    """Say what goes where, how far it is, and take an owner's yes or no."""
    if request.method == "POST" and actions.available():
        if request.POST.get("agree") == "yes":
            actions.agree(by=cast(User, request.user).id)
            messages.success(request, "Agreed. Conversations that end from now on are handed over.")
        else:
            actions.withdraw()
            messages.success(request, "Taken back. What was handed over is being deleted there.")
        return redirect("external-memory")
    context = {"available": actions.available(), "agreed": actions.agreed(), "counts": queries.counts()}
    return render(request, "accounts/external_memory.html", context)
