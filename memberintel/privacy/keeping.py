"""What an account itself says of how long its content is kept: for its owners to change, on record.

A number is days, 0 is for good, None is what the tier says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import transaction

from memberintel.privacy import audit, retention
from memberintel.privacy.retention import KINDS, Kind
from memberintel.tenancy.context import current_tenant_id
from memberintel.tenancy.models import Tenant

type Days = Mapping[Kind, int | None]
MOST: Final = 32_767  # what the columns hold, and the desk takes


@dataclass(frozen=True)
class Shorter:
    """A kind that is kept for fewer days than before; what is older goes with the next daily run."""

    kind: Kind
    what: str
    days: int

    @property
    def word(self) -> str:
        """What an owner who agrees to it sends back."""
        return f"{self.kind} {self.days}"


class NotAgreed(Exception):
    """What is to be kept for fewer days, and nobody has agreed to: `shorter`. Nothing was changed."""

    def __init__(self, shorter: list[Shorter]) -> None:
        super().__init__()
        self.shorter = shorter


def said() -> dict[Kind, int | None]:
    """What the account in scope says of each kind."""
    return _said(Tenant.objects.get(pk=current_tenant_id()))


def by_tier() -> dict[Kind, int | None]:
    """How many days each kind would be kept if the account said nothing; None is for good."""
    return retention.days_of(
        Tenant(tier=Tenant.objects.select_related("tier").get(pk=current_tenant_id()).tier)
    )


def choose(*, by: UUID, days: Days, agreed: Collection[str] | None = None) -> None:
    """Keep what an owner says of every kind, on record; saying the same again is nothing new.

    NotAgreed when it makes something shorter whose `word` is not among those agreed to; None agrees to all.
    """
    with transaction.atomic():
        rows = Tenant.objects.select_for_update(of=("self",), no_key=True).select_related("tier")
        tenant = rows.get(pk=current_tenant_id())
        before, was = _said(tenant), retention.days_of(tenant)
        changed = [kind for kind in KINDS if days[kind] != before[kind]]
        if not changed:
            return
        for kind in changed:
            setattr(tenant, f"keep_{kind}", days[kind])
        shorter = _shorter(was, retention.days_of(tenant))
        if agreed is not None and not {each.word for each in shorter} <= set(agreed):
            raise NotAgreed(shorter)
        tenant.save(update_fields=[f"keep_{kind}" for kind in changed])
        what = ", ".join(f"{kind} {_AS_PLAN if days[kind] is None else days[kind]}" for kind in changed)
        audit.record("retention_set", actor=by, subject=None, tenant=tenant.pk, what=what)


_AS_PLAN: Final = "as tier"


def _said(tenant: Tenant) -> dict[Kind, int | None]:
    return {kind: getattr(tenant, f"keep_{kind}") for kind in KINDS}


def _shorter(was: Days, then: Days) -> list[Shorter]:
    found = []
    for kind in KINDS:
        before, days = was[kind], then[kind]
        if days is not None and (before is None or days < before):
            found.append(Shorter(kind, retention.WHAT[kind], days))
    return found
