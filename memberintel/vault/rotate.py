"""Re-wrapping every data key with the current key-encryption key. Content is not touched.

Runs as the login `owner`, which alone reaches every tenant's keys. Each batch is a transaction of its own, and
what is left to do is read from the rows: a run that was killed is resumed by running again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from django.db import connection, models, transaction

from memberintel.lib import clock
from memberintel.vault.errors import CannotOpen, KekRefused
from memberintel.vault.kek import Keks
from memberintel.vault.models import DataKey, KnownKek
from memberintel.vault.owner import Owner, OwnerKind

BATCH = 200


@dataclass(frozen=True, slots=True)
class Batch:
    """What one committed transaction did; `broken` are rows no held KEK unwraps, left as they were."""

    rewrapped: int
    broken: tuple[UUID, ...]


def remaining(keks: Keks) -> int:
    """How many living data keys the current KEK does not wrap yet."""
    return _left(keks).count()


def missing(keks: Keks) -> set[str]:
    """Fingerprints of the KEKs that data keys still need and that are not held."""
    needed = _left(keks).order_by().values_list("kek", flat=True).distinct()
    return {str(name) for name in needed} - keks.fingerprints()


def rewrap(keks: Keks, size: int = BATCH) -> Iterator[Batch]:
    """Re-wrap, `size` keys a transaction, until none is left; yields after each commit."""
    after = UUID(int=0)
    while True:
        with transaction.atomic():
            rows = list(_left(keks).filter(id__gt=after).order_by("id").select_for_update()[:size])
            good = [row for row in rows if _rewrap_one(row, keks)]
            DataKey.objects.bulk_update(good, ["wrapped", "kek"])
        if not rows:
            return
        after = rows[-1].id
        yield Batch(len(good), tuple(row.id for row in rows if row not in good))


def retire(keks: Keks) -> list[str]:
    """Retire every KEK but the current: it wraps nothing here any more and never will again.

    Returns their fingerprints. KekRefused while a data key still needs one of them.
    """
    with transaction.atomic():
        # Waits for inserts under way and holds off later ones, which then find the KEK retired.
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE vault.data_keys IN SHARE ROW EXCLUSIVE MODE")
        left = remaining(keks)
        if left:
            raise KekRefused(f"{left} data keys still need a former key-encryption key; none was retired.")
        living = KnownKek.objects.exclude(fingerprint=keks.current.fingerprint).filter(retired_at=None)
        names = sorted(living.values_list("fingerprint", flat=True))
        living.update(retired_at=clock.now())
    return names


def _left(keks: Keks) -> models.QuerySet[DataKey]:
    return DataKey.objects.filter(wrapped__isnull=False).exclude(kek=keks.current.fingerprint)


def _rewrap_one(row: DataKey, keks: Keks) -> bool:
    owner = Owner(cast(OwnerKind, row.kind), row.tenant_id, row.customer_id)
    try:
        key = keks.named(str(row.kek_id)).unwrap(bytes(row.wrapped or b""), owner)
    except CannotOpen:
        return False
    row.wrapped, row.kek_id = keks.current.wrap(key, owner), keks.current.fingerprint
    return True
