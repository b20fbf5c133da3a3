"""The page on which customers take along what is theirs."""

from __future__ import annotations

from typing import cast

from allauth.core import ratelimit
from asgiref.sync import sync_to_async
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memberintel.accounts.access import signed_in
from memberintel.privacy import erase, export, sending, tasks
from memberintel.tenancy.models import User
from memberintel.vault.errors import CannotOpen

BUSY = "Others are taking copies just now. Try again in a minute; nothing is lost meanwhile."
LOCKED = "What is yours cannot be opened just now, so there is no copy to take. We have been told; try again later."


@require_safe
@signed_in
def your_data(request: HttpRequest) -> HttpResponse:
    """What one can do with what is one's own."""
    return render(request, "privacy/your_data.html")


@require_POST
@signed_in
async def take_copy(request: HttpRequest) -> HttpResponseBase:
    """Everything that is the customer's, as one file."""
    try:
        return await sending.archive(cast(User, await request.auser()).pk)
    except export.Busy:
        return await _refused(request, BUSY)
    except CannotOpen:
        return await _refused(request, LOCKED)


async def _refused(request: HttpRequest, alert: str) -> HttpResponse:
    page = sync_to_async(signed_in(_page))
    return await page(request, alert)


def _page(request: HttpRequest, alert: str) -> HttpResponse:
    return render(request, "privacy/your_data.html", {"alert": alert}, status=503)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def erase_page(request: HttpRequest) -> HttpResponse:
    """Erase oneself, or as an owner the whole account: the question, with the password, and the answer."""
    if request.method != "POST":
        return render(request, "privacy/erase.html")
    user = cast(User, request.user)
    if not ratelimit.consume(request, action="reauthenticate", user=user):
        problem = "Too many tries. Nothing was erased; wait a minute and try again."
        return render(request, "privacy/erase.html", {"problem": problem}, status=429)
    try:
        whole = request.POST.get("what") == "account"
        begun = erase.asked_for(user, request.POST.get("password", ""), whole=whole)
    except erase.Refused as refused:
        return render(request, "privacy/erase.html", {"problem": refused.text}, status=409)
    tasks.nudge()
    logout(request)
    return render(request, "privacy/erasing.html", {"erasure": begun})
