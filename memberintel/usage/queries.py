"""What a customer may know of their usage. In their scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.db.models import Count, F, Q, Sum

from memberintel.tenancy.context import current_customer_id
from memberintel.usage.models import LedgerEntry


@dataclass(frozen=True)
class Calls:
    """The calls of models for one purpose: how many, how many of them failed, tokens."""

    purpose: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int


def calls_by_purpose(month: date) -> list[Calls]:
    """The customer's own calls in the month (UTC) that begins on that day, the most frequent purpose first."""
    begin = datetime.combine(month, time(), UTC)
    found = (
        LedgerEntry.objects.filter(customer_id=current_customer_id(), started_at__gte=begin)
        .values("purpose")
        .annotate(
            calls=Count("*"),
            failed=Count("id", filter=Q(outcome__in=["failed", "invalid"])),
            inputs=Sum(F("input_tokens") + F("cache_write_tokens")),
            outputs=Sum("output_tokens"),
            cached=Sum("cached_tokens"),
        )
        .order_by("-calls", "purpose")
    )
    return [
        Calls(row["purpose"], row["calls"], row["failed"], row["inputs"], row["outputs"], row["cached"])
        for row in found
    ]
