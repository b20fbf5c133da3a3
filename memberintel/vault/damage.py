"""Sealed values that did not open, as rows: whoever comes across one tells staff. No content; the row's id alone."""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, connection, transaction

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.desk import SUPPORT
from memberintel.vault.models import Unopened

logger = logging.getLogger(__name__)

RINGS_FOR: Final = timedelta(days=7)
"""How long nobody may have come across it for the alarm to end by itself."""
MOST: Final = 100
_AGAIN_SECONDS: Final = 60.0
_REMEMBERED: Final = 1_000
_NOTE: Final = (
    "INSERT INTO unopened (id, place, row_id, first_at, last_at) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (place, row_id) DO UPDATE SET last_at = excluded.last_at"
    " WHERE unopened.last_at < excluded.last_at - interval '1 minute'"
)
_noted: dict[tuple[str, UUID], float] = {}


def note(table: str, column: str, row: UUID) -> None:
    """Tell staff that the value in that column of that row does not open.

    Never raises, for whoever reads on must not be stopped by it; a caller's transaction that rolls back takes it
    along, and the next one to come across the value tells again.
    """
    place, now = f"{table}.{column}", clock.now()
    if _noted.get((place, row), 0.0) > time.monotonic():
        return
    if len(_noted) >= _REMEMBERED:
        _noted.clear()
    _noted[place, row] = time.monotonic() + _AGAIN_SECONDS
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_NOTE, [uuid7(), place, row, now, now])
    except (DatabaseError, SynchronousOnlyOperation) as error:
        logger.warning("a row that cannot be opened is not noted: %s", type(error).__name__)


def seen(now: datetime) -> list[Unopened]:
    """What somebody came across of late, newest first, MOST at most. Read over `support`."""
    late = Unopened.objects.using(SUPPORT).filter(last_at__gt=now - RINGS_FOR)
    return list(late.order_by("-last_at")[:MOST])
