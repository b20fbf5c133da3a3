"""What concerns the safety of an account, for the audit: sign-ins, sign-outs, passwords, addresses, second factors.

Receivers of Django's and allauth's signals. They write when the caller's transaction, if there is one, has
committed; a row that cannot be written is an error of the request, like any other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction

from memberintel.privacy import audit
from memberintel.tenancy.context import SYSTEM_TENANT_ID, outside_scopes
from memberintel.tenancy.models import User


def connect() -> None:
    """Listen."""
    from allauth.account import signals as account
    from allauth.mfa import signals as mfa
    from django.contrib.auth import signals as auth

    for signal, action in (
        (auth.user_logged_in, "signed_in"),
        (auth.user_logged_out, "signed_out"),
        (account.password_changed, "password_changed"),
        (account.password_set, "password_changed"),
        (account.password_reset, "password_reset"),
        (account.email_changed, "email_changed"),
        (mfa.authenticator_added, "second_factor_added"),
        (mfa.authenticator_removed, "second_factor_removed"),
        (mfa.authenticator_reset, "recovery_codes_made"),
    ):
        signal.connect(partial(_note, action), weak=False, dispatch_uid=f"privacy.{action}.{id(signal)}")
    auth.user_login_failed.connect(_failed, dispatch_uid="privacy.sign_in_failed")


def _note(action: str, sender: object, *, user: User | None = None, **kwargs: Any) -> None:
    if user is None:  # somebody signed out who was signed in no more
        return
    factor = getattr(kwargs.get("authenticator"), "type", "")
    transaction.on_commit(partial(_record, action, user, factor))


def _record(action: str, user: User, what: str, *, by_themselves: bool = True) -> None:
    with outside_scopes():
        audit.record(
            action,
            actor=user.pk if by_themselves else None,
            subject=user.pk if user.tenant_id else None,
            tenant=user.tenant_id or SYSTEM_TENANT_ID,
            what=f"factor {what}" if what else "",
        )


def _failed(sender: object, *, credentials: dict[str, Any], **kwargs: Any) -> None:
    """Of a known address in its account; of an unknown one without the address, which may be a password."""
    address = next(
        (credentials[name] for name in ("email", "login", "username") if credentials.get(name)), ""
    )
    user = User.objects.filter(email=str(address).lower()).first() if address else None
    if user is None:
        transaction.on_commit(partial(audit.record_of_nobody, "sign_in_failed"))
    else:
        transaction.on_commit(partial(_record, "sign_in_failed", user, "", by_themselves=False))
