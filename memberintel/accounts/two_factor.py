"""The second factor: its secrets are sealed with the system's key, and staff get nowhere without it."""

from __future__ import annotations

import base64
from typing import Any, Final
from uuid import UUID

import qrcode
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY, generate_totp_secret
from django import forms
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from qrcode.image.svg import SvgPathImage

from memberintel.lib import clock
from memberintel.tenancy.context import SYSTEM_TENANT_ID
from memberintel.tenancy.models import User
from memberintel.vault import cipher, keyring
from memberintel.vault.cipher import Place

# allauth seals a secret before its row exists and does not say whose it is, so all share one place.
PLACE: Final = Place(SYSTEM_TENANT_ID, None, "mfa_authenticator", "data", UUID(int=0))
FRESH_SECONDS: Final = 300


class TwoFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """Seals what allauth would store in the clear."""

    def encrypt(self, text: str) -> str:
        """Sealed, as text."""
        sealed = cipher.seal(keyring.system_key(), text.encode(), PLACE)
        return base64.b64encode(sealed).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """The secret; CannotOpen when the key is missing or it was tampered with."""
        sealed = base64.b64decode(encrypted_text)
        return cipher.open_(keyring.system_key(), sealed, PLACE).decode()

    def build_totp_svg(self, url: str) -> str:
        """The QR code as one SVG element, to stand in a page as it is."""
        image: SvgPathImage = qrcode.make(url, image_factory=SvgPathImage, border=2)
        return str(image.to_string(encoding="unicode"))

    def get_totp_issuer(self) -> str:
        """What an authenticator app shows above the code."""
        return "MemberIntel"


class ActivateForm(ActivateTOTPForm):  # type: ignore[misc]  # allauth has no types
    """Enrolment. The secret waits for the first code in the session, which is a row too: sealed there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.user = kwargs.pop("user")
        forms.Form.__init__(self, *args, **kwargs)
        adapter, kept = TwoFactorAdapter(), context.request.session
        if not self.is_bound or SECRET_SESSION_KEY not in kept:
            kept[SECRET_SESSION_KEY] = adapter.encrypt(generate_totp_secret())
        self.secret = adapter.decrypt(kept[SECRET_SESSION_KEY])


def missing(request: HttpRequest, user: User) -> HttpResponseBase | None:
    """Where a member of staff must go before anything else: to enrol, or to prove the factor; else None.

    That the account has a factor is not enough: a session from before it was enrolled has not proven it.
    """
    factors = dict(Authenticator.objects.filter(user_id=user.pk).values_list("type", "id"))
    if Authenticator.Type.TOTP not in factors:
        _count_sign_in_as_proof(request, user)
        return redirect_to_login(request.get_full_path(), reverse("mfa_activate_totp"))
    records = get_authentication_records(request, user)
    if not any(done["method"] == "mfa" and done.get("id") in factors.values() for done in records):
        return redirect_to_login(request.get_full_path(), reverse("mfa_reauthenticate"))
    return None


def note_enrolment(
    sender: object, request: HttpRequest, user: User, authenticator: Any, **kwargs: Any
) -> None:
    """Whoever has just enrolled has typed a code: this session has proven the factor."""
    if authenticator.type == Authenticator.Type.TOTP:
        record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)


def _count_sign_in_as_proof(request: HttpRequest, user: User) -> None:
    """Spare somebody who typed the password a moment ago typing it again in order to enrol."""
    records = get_authentication_records(request, user)
    fresh = clock.now().timestamp() - FRESH_SECONDS
    if records and records[-1]["method"] == "password" and records[-1]["at"] > fresh:
        record_authentication(request, user, "password", reauthenticated=True)
