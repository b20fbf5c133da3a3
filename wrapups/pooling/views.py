"""An owner's word on pooling, said on the privacy page."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from memberintel.accounts.access import owner_required, signed_in
from memberintel.tenancy.models import User
from wrapups.pooling import choices


@require_POST
@signed_in
@owner_required
def pooling(request: HttpRequest) -> HttpResponse:
    """Keep an owner's yes or no, for everybody in the account."""
    yes = request.POST.get("takes_part") == "yes"
    choices.choose(by=cast(User, request.user).pk, takes_part=yes)
    messages.success(
        request,
        "Kept. This account takes part wherever it is asked to."
        if yes
        else "Kept. This account takes no part, and nothing of it is in what was found.",
    )
    return redirect("privacy")
