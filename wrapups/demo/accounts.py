"""The accounts of the demo, and the note of their passwords in the data folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from allauth.account.models import EmailAddress
from django.db import transaction

from memberintel.embedded.folder import write_private
from memberintel.tenancy.models import Tenant, User

PRO: Final = "demo@memberintel.example"
FREE: Final = "free@memberintel.example"
STAFF: Final = "staff@memberintel.example"
LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look like another


@dataclass(frozen=True)
class Note:
    """What must outlast an interrupted first run: the passwords, the day of it, and whether all was made."""

    passwords: Mapping[str, str]
    day: date
    complete: bool = False

    @classmethod
    def fresh(cls, day: date) -> Note:
        """A note with new passwords."""
        return cls({email: _password() for email in (PRO, FREE, STAFF)}, day)

    @classmethod
    def read(cls, path: Path) -> Note | None:
        """The note of an earlier run; None when there is none that can be read."""
        try:
            found = json.loads(path.read_text())
            return cls(dict(found["passwords"]), date.fromisoformat(found["day"]), bool(found["complete"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Keep the note where only we can read it."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, json.dumps(asdict(self) | {"day": self.day.isoformat()}, indent=1))

    def completed(self) -> Note:
        """The note once everything is there."""
        return replace(self, complete=True)


def _password() -> str:
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(3))


def make(passwords: Mapping[str, str]) -> User:
    """Make the accounts that are missing; the Pro customer."""
    with transaction.atomic():
        pro = _customer(PRO, "Kiln & Kin", "pro", passwords)
        _customer(FREE, "The Sourdough Letter", "free", passwords)
        if not User.objects.filter(email=STAFF).exists():
            _verified(User.objects.create_superuser(STAFF, passwords[STAFF]))
    return pro


def _customer(email: str, name: str, tier: str, passwords: Mapping[str, str]) -> User:
    found = User.objects.filter(email=email).first()
    if found is not None:
        return found
    tenant = Tenant.objects.create(name=name, tier_id=tier)
    return _verified(User.objects.create_user(email, passwords[email], tenant=tenant, is_owner=True))


def _verified(user: User) -> User:
    """An address that nobody needs to confirm: no letter goes out at sign-in."""
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user
