"""Every address of the product and the rule it declares.

A page of ours declares its rule by its decorators (`signed_in`, `tier_required`, `owner_required`), an address of
the API by its scopes, a page of the desk by standing under the desk. What nobody has to sign in for, and allauth's
pages, are listed here by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.urls import URLPattern, get_resolver

OPEN = frozenset(
    {
        *("healthz", "readyz", "metrics", "start", "mail", "join"),
        *("account_login", "account_signup", "account_inactive", "account_logout"),
        *("account_reset_password", "account_reset_password_done"),
        *("account_reset_password_from_key", "account_reset_password_from_key_done"),
        *("account_confirm_email", "account_email_verification_sent", "account_confirm_login_code"),
        # Half-way through a sign-in: without one they lead back to its beginning.
        *("mfa_authenticate",),
    }
)
# allauth's, for whoever is signed in, staff too.
SIGNED_IN = frozenset(
    {
        *("account_email", "account_change_password", "account_set_password", "account_reauthenticate"),
        *("account_request_reauthentication_code", "account_confirm_reauthentication_code"),
        *("mfa_index", "mfa_reauthenticate", "mfa_activate_totp", "mfa_deactivate_totp"),
        *("mfa_view_recovery_codes", "mfa_generate_recovery_codes", "mfa_download_recovery_codes"),
    }
)

FITTING = {"int": "1", "slug": "soul", "str": "2026-01-01"}


@dataclass(frozen=True)
class Route:
    """An address: its name, its path, what it takes as (name, "uuid" or another converter), the rules it declares."""

    name: str
    path: str
    takes: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the ids in the path."""
        return tuple(name for name, kind in self.takes if kind == "uuid")

    def at(self, ids: dict[str, Any]) -> str:
        """The path with these ids, random ones for those not given, and what fits for the rest."""
        path = "/" + self.path
        for name, kind in self.takes:
            value = ids.get(name) or (uuid4() if kind == "uuid" else FITTING[kind])
            path = path.replace(f"<{kind}:{name}>", str(value))
        return path

    def __str__(self) -> str:
        return self.path or "/"


def routes() -> list[Route]:
    """All of them but the desk's, which are found by `desk_routes`."""
    return [route for route in _all() if not route.path.startswith("admin/")]


def desk_routes() -> list[Route]:
    """What stands under /admin/."""
    return [route for route in _all() if route.path.startswith("admin/")]


def _all() -> Iterator[Route]:
    for path, pattern in _walk(get_resolver(), ""):
        name = pattern.name or path.replace("/", "")
        takes = tuple((word, kind) for kind, word in re.findall(r"<([a-z]+):([a-z_]+)>", path))
        yield Route(name, path, takes, _rules(path, name, pattern.callback))


def _rules(path: str, name: str, view: Any) -> tuple[str, ...]:
    declared: tuple[str, ...] = getattr(view, "rules", ())
    if path.startswith("admin/"):
        return ("desk",)
    if path.startswith("api/"):
        open_to_all = getattr(view, "open_to_all", False)
        return ("open",) if open_to_all else ("api",) if getattr(view, "cls", None) else ()
    if declared:
        return declared
    return ("open",) if name in OPEN else ("signed in",) if name in SIGNED_IN else ()


def _walk(resolver: Any, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        whole = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield whole, entry
        else:
            yield from _walk(entry, whole)
