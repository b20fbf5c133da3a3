"""The pages on which staff open a customer's content, with a reason and on record, and edit it for them."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods

from memberintel.privacy import desk_copy, desk_erase, openable, opening
from memberintel.privacy.models import AccessGrant
from memberintel.privacy.openable import Editor, Gone, NotSaved, Openable
from memberintel.tenancy.context import Scope
from memberintel.tenancy.models import User
from memberintel.tenancy.staff import TOO_SHORT, NoReason, reason_in
from memberintel.vault.errors import CannotOpen

LONGEST_FILE: Final = 2_000_000  # bytes; what reads a file has a limit of its own, and says so


def urls() -> list[URLPattern]:
    """Below /admin/; behind the desk's gate like every page of it."""
    guarded = admin.site.admin_view
    return [
        path("open/<str:kind>/<uuid:row>/", guarded(open_content), name="open"),
        path("open/<str:kind>/<uuid:row>/edit/", guarded(edit_content), name="open_edit"),
        *desk_erase.urls(),
        *desk_copy.urls(),
    ]


@require_http_methods(["GET", "POST"])
def open_content(request: HttpRequest, kind: str, row: UUID) -> HttpResponse:
    """Ask for the reason; once there is a grant, show the content. Each time it is shown is on record."""
    what, whose = _found(request, kind, row, opening.OPEN)
    staff = cast(User, request.user)
    if request.method == "POST":
        return _answer(request, what, whose, row)
    grant = opening.standing(staff=staff, whose=whose)
    if grant is None:
        return _page(request, what, whose, row, "admin/open_why.html")
    return _shown(request, what, whose, row)


@require_http_methods(["GET", "POST"])
def edit_content(request: HttpRequest, kind: str, row: UUID) -> HttpResponse:
    """Change it on the customer's behalf, under a grant and with a reason of its own."""
    what, whose = _found(request, kind, row, opening.EDIT)
    if what.editor is None:
        raise Http404
    staff = cast(User, request.user)
    if opening.standing(staff=staff, whose=whose) is None:
        return redirect("admin:open", kind, row)
    if request.method == "POST":
        return _saved(request, what, what.editor, whose, row)
    return _form(request, what, what.editor, whose, row)


def _found(request: HttpRequest, kind: str, row: UUID, permission: str) -> tuple[Openable, Scope]:
    if not request.user.has_perm(permission):
        raise PermissionDenied
    what = openable.kinds().get(kind)
    whose = what.whose(row) if what else None
    if what is None or whose is None:
        raise Http404
    return what, whose


def _answer(request: HttpRequest, what: Openable, whose: Scope, row: UUID) -> HttpResponse:
    """What was posted: the reason, or that the person is done."""
    staff = cast(User, request.user)
    if request.POST.get("act") == "close":
        opening.give_back(staff=staff, whose=whose)
        messages.success(request, "Closed. To look again, give a reason again.")
        return redirect("admin:tenancy_user_change", whose.customer_id)
    try:
        opening.ask(staff=staff, whose=whose, reason=request.POST.get("reason", ""))
    except NoReason:
        return _page(request, what, whose, row, "admin/open_why.html", problem=TOO_SHORT, status=400)
    return redirect("admin:open", what.kind, row)


def _shown(request: HttpRequest, what: Openable, whose: Scope, row: UUID) -> HttpResponse:
    staff = cast(User, request.user)
    content, damaged = "", False
    try:
        with opening.opened(staff=staff, whose=whose, what=f"{what.kind} {row}") as grant:
            try:
                content = render_to_string(what.template, what.show(row, request.GET.dict()))
            except CannotOpen:
                damaged = True
    except Gone:
        raise Http404 from None
    except opening.NoGrant:  # it ended a moment ago
        return redirect("admin:open", what.kind, row)
    more: dict[str, Any] = {"content": content, "damaged": damaged, "grant": grant}
    if what.editor and not damaged and staff.has_perm(opening.EDIT):
        more["edit"] = reverse("admin:open_edit", args=[what.kind, row])
    return _page(request, what, whose, row, "admin/open.html", **more)


def _form(
    request: HttpRequest, what: Openable, editor: Editor, whose: Scope, row: UUID, **more: Any
) -> HttpResponse:
    """The editing form. To fill it is to open it."""
    typed, staff = (request.POST if request.method == "POST" else None), cast(User, request.user)
    try:
        with opening.opened(staff=staff, whose=whose, what=f"{what.kind} {row}") as grant:
            fields = render_to_string(editor.template, editor.form(row, typed) | more.pop("context", {}))
    except Gone:
        raise Http404 from None
    except CannotOpen:
        return redirect("admin:open", what.kind, row)
    return _page(request, what, whose, row, "admin/open_edit.html", fields=fields, grant=grant, **more)


def _typed(request: HttpRequest, editor: Editor) -> QueryDict:
    """What was posted, the text of the file with it where one is asked for."""
    sent = request.FILES.get(editor.file) if editor.file else None
    if sent is None:
        return request.POST
    typed = request.POST.copy()
    typed[editor.file] = sent.read(LONGEST_FILE).decode("utf-8", "surrogateescape")
    return typed


def _saved(request: HttpRequest, what: Openable, editor: Editor, whose: Scope, row: UUID) -> HttpResponse:
    staff, reason = cast(User, request.user), request.POST.get("reason", "")
    act: dict[str, Any] = {"staff": staff, "whose": whose, "what": f"{what.kind} {row}", "action": "edited"}
    try:
        with opening.acting(**act, reason=reason):
            done = editor.save(row, _typed(request, editor), staff.pk, reason_in(reason))
    except NoReason:
        return _form(request, what, editor, whose, row, problem=TOO_SHORT, status=400)
    except opening.NoGrant:
        return _form_lost(request, what, row)
    except NotSaved as refusal:
        more = {"problem": refusal.text, "status": refusal.status, "context": refusal.context}
        return _form(request, what, editor, whose, row, **more)
    except Gone:
        raise Http404 from None
    except CannotOpen:
        messages.error(request, "It cannot be opened, so nothing was written over it.")
        return redirect("admin:open", what.kind, row)
    messages.success(request, done)
    return redirect("admin:open", what.kind, row)


def _form_lost(request: HttpRequest, what: Openable, row: UUID) -> HttpResponse:
    messages.error(
        request, "Your time to look was over, so nothing was saved. Give the reason and try again."
    )
    return redirect("admin:open", what.kind, row)


def _page(
    request: HttpRequest,
    what: Openable,
    whose: Scope,
    row: UUID,
    template: str,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    person = User.objects.filter(pk=whose.customer_id).first() if whose.customer_id else None
    grant: AccessGrant | None = more.get("grant")
    context = {
        **admin.site.each_context(request),
        "title": f"{what.words} of {person.email if person else whose.customer_id}",
        "what": what,
        "row": row,
        "person": person,
        "until": grant.expires_at if grant else None,
        "minutes": settings.ACCESS_GRANT_SECONDS // 60,
        "typed_reason": request.POST.get("reason", ""),
        **more,
    }
    response = render(request, template, context, status=status)
    response.headers["Cache-Control"] = "no-store"
    return response
