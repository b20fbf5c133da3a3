"""The ledger: what every call of a model used and cost."""

from __future__ import annotations

from uuid import UUID

from django.db import models

from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.models import TenantModel


def customer_if_any() -> UUID | None:
    """Customer of the scope in force, or None for work of the tenant as a whole. A field default."""
    return current_scope().customer_id


class LedgerEntry(TenantModel):
    """One call of a model, failed and cancelled ones too. Holds no text: ids, counts, codes.

    Without a customer when the call was made for a tenant as a whole or for the system itself.
    """

    class Outcome(models.TextChoices):
        COMPLETE = "complete"
        INVALID = "invalid"  # came to its end, in the wrong shape
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    customer_id = models.UUIDField(default=customer_if_any, null=True, editable=False)
    session = models.UUIDField(null=True)
    turn = models.UUIDField(null=True)
    purpose = models.CharField(max_length=20)
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=100)
    attempt = models.PositiveSmallIntegerField(help_text="which call of the same question, from 1")
    input_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    cached_tokens = models.PositiveIntegerField()
    cache_write_tokens = models.PositiveIntegerField()
    estimated = models.BooleanField(help_text="cut off before the provider had told the counts")
    cost_micros = models.PositiveBigIntegerField(
        null=True, help_text="micro-dollars; empty: the price is not known"
    )
    outcome = models.CharField(max_length=10, choices=Outcome)
    error_code = models.CharField(max_length=20, blank=True)
    error_reason = models.CharField(max_length=60, blank=True)
    request_digest = models.CharField(max_length=64)
    request_bytes = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()

    class Meta:
        db_table = "ledger"
        verbose_name = "call"
        verbose_name_plural = "ledger"
        base_manager_name = "objects"
        indexes = [
            models.Index(fields=["tenant_id", "started_at"], name="ledger_tenant_started"),
            models.Index(fields=["tenant_id", "session"], name="ledger_tenant_session"),
            # What staff filter for: a few among all.
            models.Index(
                fields=["id"], name="ledger_failed", condition=models.Q(outcome__in=["failed", "invalid"])
            ),
            models.Index(fields=["id"], name="ledger_unpriced", condition=models.Q(cost_micros__isnull=True)),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(outcome__in=["complete", "cancelled"], error_code="")
                | (models.Q(outcome__in=["failed", "invalid"]) & ~models.Q(error_code="")),
                name="ledger_error_with_failure",
            )
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.provider}:{self.model} {self.outcome}"
