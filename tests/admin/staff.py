"""A member of staff and the way they come in."""

from __future__ import annotations

import time
from uuid import uuid4

from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY, format_hotp_value, hotp_value
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.test import Client

from memberintel.accounts.two_factor import TwoFactorAdapter
from memberintel.tenancy.models import User

PASSWORD = "a long enough password"


def make_staff(*, superuser: bool = True, role: str = "") -> User:
    """A member of staff who has never signed in; of that role, else an administrator unless told not to."""
    email = f"staff-{uuid4().hex[:12]}@example.com"
    if superuser and not role:
        return User.objects.create_superuser(email, PASSWORD)
    return _with_role(User.objects.create_user(email, PASSWORD, is_staff=True), role)


def clerk(role: str) -> User:
    """The same without a password, whose hash takes a second: somebody who acts in a test and never signs in."""
    return _with_role(User.objects.create_user(f"clerk-{uuid4().hex[:12]}@example.com", is_staff=True), role)


def _with_role(user: User, role: str) -> User:
    if role:  # over the login that may: a web process hands out no rights
        group = Group.objects.get(name=role)
        User.groups.through.objects.using("support").create(user_id=user.pk, group_id=group.pk)
    return user


def code_for(secret: str) -> str:
    """The code an app shows now. What was used before counts again: a test does not wait half a minute."""
    cache.clear()
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


def enrol(user: User) -> str:
    """Let the person enrol; the secret their app keeps."""
    return _enrolled(user)[1]


def sign_in(user: User) -> Client:
    """A browser in which the person has just enrolled and stands before the desk."""
    return _enrolled(user)[0]


def _enrolled(user: User) -> tuple[Client, str]:
    client = Client()
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD}, follow=True)
    secret = TwoFactorAdapter().decrypt(client.session[SECRET_SESSION_KEY])
    client.post("/accounts/2fa/totp/activate/", {"code": code_for(secret)})
    return client, secret
