"""What staff see of a review. Read over the login `support`, which has no other way to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connections

from memberintel.tenancy.context import SYSTEM_TENANT_ID
from memberintel.tenancy.desk import SUPPORT
from memberintel.vault.fields import Sealed
from wrapups.pooling.models import PooledGroup

ASK = "SELECT id, kind, wording, made_at, draft FROM app.shown_pool() ORDER BY kind, id"


@dataclass(frozen=True)
class Shown:
    """A group that enough tenants stand behind now. Of whom, and of how many, nothing is known here."""

    id: UUID
    kind: str
    phrases: tuple[str, ...]
    made_at: datetime
    draft: UUID | None

    @property
    def label(self) -> str:
        """What they did, in words."""
        return str(PooledGroup.Kind(self.kind).label)


def shown() -> list[Shown]:
    """Every group staff may see now; none while pooling is off."""
    with connections[SUPPORT].cursor() as cursor:
        cursor.execute(ASK)
        rows = cursor.fetchall()
    return [
        Shown(key, kind, _opened(key, wording), made_at, draft) for key, kind, wording, made_at, draft in rows
    ]


def one(key: UUID) -> Shown | None:
    """The group of that id, if staff may see it now."""
    return next((group for group in shown() if group.id == key), None)


def _opened(key: UUID, wording: bytes) -> tuple[str, ...]:
    row = PooledGroup(tenant_id=SYSTEM_TENANT_ID, id=key, wording=Sealed(bytes(wording)))
    return tuple(row.wording)
