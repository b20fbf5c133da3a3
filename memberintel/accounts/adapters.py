"""What allauth asks us: where a new account belongs, and where to go after sign-in."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.urls import reverse

from memberintel.accounts import actions
from memberintel.tenancy.models import User


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Sign-up makes a tenant with its owner; staff go to the support desk."""

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Fill the user from the form, then save it together with its tenant."""
        super().save_user(request, user, form, commit=False)
        user.email = user.email.lower()
        if commit:
            actions.found_tenant(user)
        return user

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Where a person lands who asked for no page in particular."""
        user = request.user
        if user.is_authenticated and user.tenant_id is None:
            return reverse("admin:index")
        return str(super().get_login_redirect_url(request))

    get_signup_redirect_url = get_login_redirect_url

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Where a person lands who has just changed the password."""
        user = request.user
        return reverse("settings" if user.is_authenticated and user.tenant_id else "admin:index")

    def format_email_subject(self, subject: str) -> str:
        """The product's name in front."""
        return f"MemberIntel: {subject}"
