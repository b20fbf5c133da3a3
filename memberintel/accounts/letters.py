"""Letters: sending those of ours, and those a machine without mail writes to files, for whoever sits at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from itertools import islice
from pathlib import Path
from typing import Final

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from memberintel.accounts.invitations import Invited, token

SHOWN: Final = 20
NEAR: Final = {"127.0.0.1", "::1"}
NAMES: Final = {"localhost", "127.0.0.1", "[::1]"}
FORWARDED: Final = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_FORWARDED", "HTTP_X_REAL_IP")
_BETWEEN = re.compile(rb"^-{79}\n", re.MULTILINE)  # what Django's file backend writes after each letter


@dataclass(frozen=True)
class Letter:
    """A letter as its reader sees it."""

    to: str
    subject: str
    at: datetime | None
    body: str


def folder() -> Path | None:
    """Where letters are written; None where there is mail."""
    found = settings.MAILERS["default"].get("OPTIONS", {}).get("file_path")
    return Path(found) if found else None


def readable_by(request: HttpRequest) -> bool:
    """Whether the letters may be shown: on one machine without mail, to a browser on that very machine.

    They hold links that open accounts. A request that came through a proxy only looks near, and one under
    another name may be a stranger's page that points to us.
    """
    if not settings.EMBEDDED or folder() is None or request.META.get("REMOTE_ADDR") not in NEAR:
        return False
    if any(header in request.META for header in FORWARDED):
        return False
    return re.sub(r":\d+$", "", request.get_host()) in NAMES


def send_invitation(request: HttpRequest, invited: Invited) -> bool:
    """Send the letter of an invitation; False when mail does not work. The invitation stands either way."""
    link = request.build_absolute_uri(reverse("join", args=[token(invited)]))
    try:
        get_adapter().send_mail("account/email/invitation", invited.email, {"invited": invited, "link": link})
    except OSError:  # those of SMTP too
        return False
    return True


def newest(limit: int = SHOWN) -> list[Letter]:
    """The last letters, newest first."""
    where = folder()
    if where is None or not where.is_dir():
        return []
    files = sorted(where.glob("*.log"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    return list(islice((letter for file in files for letter in _letters(file)), limit))


def _letters(file: Path) -> Iterator[Letter]:
    """Those of one file, newest first."""
    for raw in reversed(_BETWEEN.split(file.read_bytes())):
        if raw.strip():
            yield _letter(message_from_bytes(raw, policy=policy.default))


def _letter(message: EmailMessage) -> Letter:
    body = message.get_body(("plain",))
    date = message["date"]
    return Letter(
        str(message["to"] or ""),
        str(message["subject"] or ""),
        date.datetime if date else None,
        body.get_content().strip() if body else "",
    )
