"""Where numbers come from, behind one interface."""

from __future__ import annotations

from typing import Any

from brain.domain.heartbeat.metrics import SourceKind
from brain.heartbeat.sources.base import Failed, Fetched, Fetcher, Window
from brain.heartbeat.sources.memberpress import MemberPress
from brain.heartbeat.sources.stripe import Stripe

__all__ = ["ASKED", "Failed", "Fetched", "Fetcher", "Window", "fetcher"]

# The kinds that are asked for numbers; files are brought by people.
ASKED: dict[SourceKind, type[Stripe] | type[MemberPress]] = {"stripe": Stripe, "memberpress": MemberPress}


def fetcher(kind: str, credentials: dict[str, Any]) -> Fetcher:
    """The source of that kind with these credentials; KeyError for one that is not asked."""
    return ASKED[kind](credentials)  # type: ignore[index]
