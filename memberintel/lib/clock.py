"""The only clock of the product: tests replace `source` and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


def _system() -> datetime:
    return datetime.now(UTC)


source: Callable[[], datetime] = _system


def now() -> datetime:
    """The present moment, aware, in UTC."""
    return source()
