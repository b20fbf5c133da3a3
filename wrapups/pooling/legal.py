"""The lock of pooling: recording what lawyers said, turning it on and off. By staff, over a login that may.

Whatever ends it clears the pool in the same transaction: with pooling off there is no group and nobody behind one.
"""

from __future__ import annotations

from django.db import connections, transaction

from memberintel.lib import clock
from memberintel.tenancy.locks import one_at_a_time
from memberintel.tenancy.models import User
from wrapups.pooling.choices import LOCK
from wrapups.pooling.models import LegalReview


class Ended(Exception):
    """The review was taken back, or another one stands in its place."""


def record(row: LegalReview, *, by: User, using: str) -> LegalReview:
    """Keep a legal review. One that stood before ends with it; pooling is off until somebody turns it on."""
    row.recorded_by, row.recorded_at, row.running = by.pk, clock.now(), False
    with transaction.atomic(using=using):
        one_at_a_time(LOCK, using=using)
        LegalReview.objects.using(using).filter(ended_at=None).update(running=False, ended_at=clock.now())
        row.save(using=using, force_insert=True)
        _clear(using)
    return row


def turn(row: LegalReview, *, on: bool, using: str) -> None:
    """Turn pooling on or off. Raises Ended."""
    with transaction.atomic(using=using):
        one_at_a_time(LOCK, using=using)
        if not LegalReview.objects.using(using).filter(pk=row.pk, ended_at=None).update(running=on):
            raise Ended
        if not on:
            _clear(using)


def take_back(row: LegalReview, *, using: str) -> None:
    """The review no longer holds: pooling is locked. Raises Ended."""
    with transaction.atomic(using=using):
        one_at_a_time(LOCK, using=using)
        standing = LegalReview.objects.using(using).filter(pk=row.pk, ended_at=None)
        if not standing.update(running=False, ended_at=clock.now()):
            raise Ended
        _clear(using)


def _clear(using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT app.clear_pool()")
