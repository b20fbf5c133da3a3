"""The pages of colleagues: who is in the team, asking people to join it, joining it."""

from __future__ import annotations

from typing import Final, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth import login
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from memberintel.accounts import colleagues, invitations, letters
from memberintel.accounts.access import owner_required, signed_in
from memberintel.accounts.colleagues import NotFound, Refused
from memberintel.accounts.forms import InviteForm, JoinForm
from memberintel.accounts.invitations import Invited
from memberintel.lib import clock
from memberintel.tenancy.models import User

SIGN_IN_BY: Final = "django.contrib.auth.backends.ModelBackend"


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def colleague_list(request: HttpRequest) -> HttpResponse:
    """Who is in the team, who is invited, who was removed; and inviting somebody."""
    form = InviteForm(request.POST or None)
    if request.method != "POST":
        return _team(request, form)
    if not form.is_valid():
        return _team(request, form, status=400)
    try:
        invited = invitations.invite(form.cleaned_data["email"], by=cast(User, request.user).id)
    except Refused as refusal:
        form.add_error("email", refusal.text)
        return _team(request, form, status=400)
    _send(request, invited)
    return redirect("colleagues")


@require_POST
@signed_in
@owner_required
def invitation(request: HttpRequest, invitation: UUID) -> HttpResponse:
    """Send the letter of an open invitation again, or withdraw it."""
    act = request.POST.get("act")
    if act not in {"again", "withdraw"}:
        raise BadRequest("unknown act")
    try:
        if act == "again":
            _send(request, invitations.again(invitation))
        else:
            email = invitations.withdraw(invitation)
            messages.success(request, f"The invitation of {email} is withdrawn; its link no longer works.")
    except invitations.Gone:
        raise Http404 from None
    except Refused as refusal:
        messages.warning(request, refusal.text)
    return redirect("colleagues")


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def remove(request: HttpRequest, person: UUID) -> HttpResponse:
    """Ask once, then close the team to a colleague."""
    try:
        colleague = colleagues.member(person)
        if request.method != "POST":
            return render(request, "accounts/remove.html", {"place": "colleagues", "colleague": colleague})
        colleagues.remove(person, by=cast(User, request.user).id)
    except NotFound:
        raise Http404 from None
    except Refused as refusal:
        messages.error(request, refusal.text)
    else:
        messages.success(
            request, f"{colleague.email} is removed and signed out. You can let them back in below."
        )
    return redirect("colleagues")


@require_POST
@signed_in
@owner_required
def let_back(request: HttpRequest, person: UUID) -> HttpResponse:
    """Undo a removal."""
    try:
        colleague = colleagues.let_back(person)
    except NotFound:
        raise Http404 from None
    messages.success(request, f"{colleague.email} can sign in again, with the password they had.")
    return redirect("colleagues")


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """The page behind the link of an invitation: choose a password and come in."""
    try:
        invited = invitations.look(token)
        if request.user.is_authenticated:
            return _join(request, {"invited": invited, "signed_in_as": request.user.email}, status=409)
        form = JoinForm(request.POST or None, email=invited.email)
        if not form.is_valid():
            return _join(request, {"invited": invited, "form": form}, status=400 if form.is_bound else 200)
        user = invitations.accept(token, form.cleaned_data["password"])
    except invitations.Gone:
        return _join(request, {"gone": True}, status=410)
    except invitations.Registered:
        return _join(request, {"registered": True}, status=409)
    login(request, user, backend=SIGN_IN_BY)
    messages.success(request, "Welcome. Your conversations are yours alone; colleagues do not see them.")
    return redirect("chat")


def _join(request: HttpRequest, context: dict[str, object], *, status: int) -> HttpResponse:
    response = render(request, "accounts/join.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _team(request: HttpRequest, form: InviteForm, *, status: int = 200) -> HttpResponse:
    now = clock.now()
    context = {
        "place": "colleagues",
        "form": form,
        "members": colleagues.members(),
        "invitations": [(row, row.expires_at <= now) for row in invitations.open_invitations()],
        "removed": colleagues.removed(),
    }
    return render(request, "accounts/colleagues.html", context, status=status)


def _send(request: HttpRequest, invited: Invited) -> None:
    """Send the letter of an invitation and say what became of it. The invitation stands either way."""
    if letters.send_invitation(request, invited):
        messages.success(
            request, f"{invited.email} is invited. The link in the letter works once, for seven days."
        )
    else:
        messages.error(
            request,
            f"The letter to {invited.email} could not be sent: this server's mail does not work at the moment. "
            "The invitation stands; send the letter again in a while.",
        )
