"""The privacy page: how long things are kept, who looked, and what concerns the safety of the account."""

from __future__ import annotations

from typing import cast

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from memberintel.accounts.access import signed_in
from memberintel.lib import paging
from memberintel.privacy import participants, queries, retention
from memberintel.tenancy.models import User


@require_safe
@signed_in
def privacy(request: HttpRequest) -> HttpResponse:
    """How long things are kept, and what staff did with what is the customer's, newest first; with `?show=sign-ins` the
    sign-ins instead."""
    own = request.GET.get("show") == "sign-ins"
    read = queries.about_sign_in if own else queries.seen_by_staff
    try:
        before, before_id = paging.read(request.GET.dict())
        found = read(before=before, before_id=before_id, limit=queries.PAGE + 1)
    except ValueError as error:  # half a cursor, or one that is none
        raise BadRequest(str(error)) from None
    shown, more = found[: queries.PAGE], len(found) > queries.PAGE
    context = {
        "entries": shown,
        "own": own,
        "kept": retention.told(),
        "parts": [told() for told in participants.taking_part("told")],
        "owner": cast(User, request.user).is_owner,
        "paged": before is not None,
        "older": paging.address(shown[-1].at, shown[-1].id) if more else None,
    }
    return render(request, "privacy/privacy.html", context)
