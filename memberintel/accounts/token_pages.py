"""The page of personal tokens: what scripts of the customer's own sign in with."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from memberintel.accounts import actions, queries
from memberintel.accounts.access import signed_in
from memberintel.accounts.actions import NewToken
from memberintel.accounts.forms import TokenForm
from memberintel.lib import clock


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def token_list(request: HttpRequest) -> HttpResponse:
    """All tokens, and making one; the new one is shown this once."""
    form = TokenForm(request.POST or None)
    if request.method != "POST":
        return _page(request, TokenForm())
    if not form.is_valid():
        return _page(request, form, status=400)
    days = int(form.cleaned_data["days"])
    try:
        made = actions.make_token(
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            expires_at=clock.now() + timedelta(days=days) if days else None,
        )
    except actions.TooManyTokens:
        form.add_error(
            None, f"There are {actions.TOKENS_AT_MOST} tokens, as many as one can have. Revoke one first."
        )
        return _page(request, form, status=400)
    return _page(request, TokenForm(), made=made, status=201)


@require_POST
@signed_in
def revoke(request: HttpRequest, token: UUID) -> HttpResponse:
    """From now on nobody gets in with it."""
    if not actions.revoke_token(token):
        raise Http404
    messages.success(request, "Revoked. Nobody gets in with that token any more.")
    return redirect("tokens")


def _page(
    request: HttpRequest, form: TokenForm, *, made: NewToken | None = None, status: int = 200
) -> HttpResponse:
    context = {"form": form, "made": made, "tokens": queries.tokens(), "place": "settings"}
    response = render(request, "accounts/tokens.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
