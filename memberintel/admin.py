"""The support desk: Django's admin behind the product's own sign-in and a second factor.

Its pages run without anybody's key. Only pages made for it are shown; those that packages bring count tables and
offer to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.views.decorators.csp import csp_override
from unfold.sites import UnfoldAdminSite

from memberintel.accounts import two_factor
from memberintel.privacy import desk
from memberintel.tenancy import staff
from memberintel.tenancy.desk import Look, configured
from memberintel.vault import keyring
from memberintel.vault.errors import KeyDestroyed

type View = Callable[..., HttpResponseBase]


class Desk(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    """The site. To a customer it does not exist."""

    site_header = "MemberIntel"
    site_title = "Support desk"
    index_title = "What needs attention"
    enable_nav_sidebar = True

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Take our own pages, and leave out those that installed packages bring."""
        if admin_class is not None and issubclass(admin_class, Look):
            super().register(model_or_iterable, admin_class, **options)

    def unregister(self, model_or_iterable: Any) -> None:
        """As Django's; what was left out is gone already."""
        models = model_or_iterable if isinstance(model_or_iterable, Iterable) else [model_or_iterable]
        super().unregister([model for model in models if self.is_registered(model)])

    def has_permission(self, request: HttpRequest) -> bool:
        """Active staff, and nobody of a tenant."""
        return request.user.is_authenticated and staff.is_staff(request.user)

    def get_urls(self) -> list[Any]:
        """Django's, and those on which content is opened."""
        return [*desk.urls(), *super().get_urls()]

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Every page of the desk passes the gate, under the desk's content security policy."""
        inner = super().admin_view(view, cacheable)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if refusal := self._refusal(request):
                return refusal
            with keyring.only():  # nobody's content opens on the desk but by `privacy.opening`
                try:
                    response = inner(request, *args, **kwargs)
                except KeyDestroyed:
                    return _erased(request)
                # Rendered here and not by the handler, where the keys would be at hand again.
                return response.render() if isinstance(response, SimpleTemplateResponse) else response

        return csp_override(settings.DESK_CSP)(update_wrapper(guarded, view))

    def _refusal(self, request: HttpRequest) -> HttpResponseBase | None:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if not self.has_permission(request):
            raise Http404
        if not configured():
            detail = (
                "The support desk reads over a login of its own. Set DATABASE_URL_SUPPORT and start again."
            )
            return render(
                request, "error.html", {"title": "No login", "status": 503, "detail": detail}, status=503
            )
        return two_factor.missing(request, request.user)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """There is one sign-in for everybody."""
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign out, when asked by a form."""
        if request.method == "POST":
            logout(request)
            return redirect(settings.ACCOUNT_LOGOUT_REDIRECT_URL)
        return redirect("account_logout")

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """There is one page for it."""
        return redirect("account_change_password")


def _erased(request: HttpRequest) -> HttpResponse:
    """Of who is erased there is nothing to open, and no reason can be kept any more: nothing was done."""
    detail = "This customer is erased, or being erased: their key is gone. Nothing was opened or changed."
    return render(request, "error.html", {"title": "Erased", "status": 409, "detail": detail}, status=409)
