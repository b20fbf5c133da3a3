"""Whether anything is pooled at all, and whether a tenant takes part: the lawyers' word, then the owner's.

Who takes part is asked anew wherever something is read or kept, under one lock with whoever changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from memberintel.privacy import audit
from memberintel.tenancy.context import current_tenant_id
from memberintel.tenancy.locks import one_at_a_time
from wrapups.pooling.models import LegalReview, PooledSupport, PoolingChoice

LOCK: Final = "pooling"


@dataclass(frozen=True)
class Standing:
    """How a tenant stands to pooling. `running` is of the whole product; `said` what an owner chose, None: nothing."""

    running: bool
    ground: str
    said: bool | None

    @property
    def takes_part(self) -> bool:
        """Whether items of this tenant may be read for it now."""
        return self.running and (
            self.said if self.said is not None else self.ground == LegalReview.Ground.NOTICE
        )


def review() -> LegalReview | None:
    """The legal review that stands, running or not; without one pooling is locked."""
    return LegalReview.objects.filter(ended_at=None).order_by("-id").first()


def running() -> bool:
    """Whether a legal review stands, and staff have turned pooling on."""
    return LegalReview.objects.filter(ended_at=None, running=True).exists()


def standing() -> Standing:
    """Of the tenant in scope."""
    stands = review()
    said = PoolingChoice.objects.order_by("-id").values_list("takes_part", flat=True).first()
    return Standing(bool(stands and stands.running), stands.ground if stands else "", said)


def choose(*, by: UUID, takes_part: bool) -> None:
    """Keep an owner's yes or no, on record. With a no nothing of the tenant stands behind anything from now on.

    Saying the same again is nothing new.
    """
    with transaction.atomic():
        one_at_a_time(LOCK)
        if standing().said is takes_part:
            return
        PoolingChoice.objects.create(by=by, takes_part=takes_part)
        if not takes_part:
            with connection.cursor() as cursor:
                cursor.execute("SELECT app.leave_pool()")
        action = "pooling_agreed" if takes_part else "pooling_declined"
        audit.record(action, actor=by, subject=None, tenant=current_tenant_id())


def forget(wrap_up: UUID) -> None:
    """What the wrap-up said has changed: it stands behind nothing until it is read again."""
    with transaction.atomic():
        one_at_a_time(LOCK)
        PooledSupport.objects.filter(wrap_up_id=wrap_up).delete()
