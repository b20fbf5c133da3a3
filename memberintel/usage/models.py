"""What models used and cost (the ledger), what a tenant may have made in a month (budgets and charges), and what the
clock's work did (runs).
"""

from __future__ import annotations

from uuid import UUID

from django.db import models

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.models import TenantModel, Tier


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


class Kind(models.TextChoices):
    """What is charged: one unit each time it is made."""

    CHAT_TURN = "chat_turn", "Answers"
    WRAP_UP = "wrap_up_generation", "Wrap-ups"
    JOURNAL = "journal_generation", "Journal entries"
    MOOD = "mood", "Moods of the day"


class TierBudget(models.Model):
    """How much of a kind a tenant of a tier may have made in a calendar month (UTC). Rows are edited by staff.

    A kind without a row has no limit.
    """

    tier = models.ForeignKey(Tier, on_delete=models.CASCADE, related_name="budgets", editable=False)
    kind = models.CharField(max_length=40, choices=Kind, editable=False)
    monthly_limit = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: no limit.")

    class Meta:
        db_table = "tier_budgets"
        verbose_name = "monthly budget"
        constraints = [models.UniqueConstraint(fields=["tier", "kind"], name="tier_budgets_one_per_kind")]

    def __str__(self) -> str:
        return f"{self.tier_id}: {self.get_kind_display()}"


class ChargeCounter(TenantModel):
    """What a tenant has used of a kind in a month. Changed by `app.take_charge` and `app.give_back_charge`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=40, choices=Kind)
    month = models.DateField(help_text="its first day")
    used = models.PositiveIntegerField(default=0)
    resets = models.PositiveSmallIntegerField(default=0)

    class Meta:
        db_table = "charge_counters"
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "kind", "month"], name="charge_counters_one_per_month"
            )
        ]

    def __str__(self) -> str:
        return str(self.id)


class Charge(TenantModel):
    """One unit, taken for the turn or session that `key` names; at most one for each.

    `resets` is how often the month's budget had been reset by then: a unit from before is not given back to it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=40, choices=Kind)
    key = models.UUIDField()
    month = models.DateField()
    taken_at = models.DateTimeField()
    resets = models.PositiveSmallIntegerField(default=0)

    class Meta:
        db_table = "charges"
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "kind", "key"], name="charges_one_per_key")
        ]

    def __str__(self) -> str:
        return str(self.id)


class BudgetReset(TenantModel):
    """A member of staff gave a tenant its month's budget anew. Never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=40, choices=Kind)
    month = models.DateField()
    used = models.PositiveIntegerField(help_text="what had been used until then")
    by = models.UUIDField()
    at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "budget_resets"
        base_manager_name = "objects"
        indexes = [models.Index(fields=["tenant_id", "month"], name="budget_resets_of_month")]

    def __str__(self) -> str:
        return str(self.id)


class Run(models.Model):
    """One run of a maintenance command: when, what it counted, whether it broke. Holds no tenant content.

    Held by a lease while it works, see `memberintel.usage.runs`; of those `alone` one of a kind at a time.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=40)
    started_at = models.DateTimeField(default=clock.now, editable=False)
    finished_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)
    error = models.CharField(max_length=200, blank=True, default="")
    alone = models.BooleanField(default=False)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs"
        indexes = [models.Index(fields=["kind", "-started_at"], name="runs_recent")]
        constraints = [
            models.UniqueConstraint(
                fields=["kind"],
                name="runs_one_at_a_time",
                condition=models.Q(alone=True, finished_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.started_at:%Y-%m-%d %H:%M}"


class MonthlyReport(models.Model):
    """What models were used for in a month, over all tenants, with the alarms to look at. Made anew each day.

    `sums` is a list of {purpose, model, calls, failed, cost_micros, unpriced}; `alarms` of {code, says}.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    month = models.DateField(unique=True, help_text="its first day")
    made_at = models.DateTimeField(default=clock.now)
    tenants = models.PositiveIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(default=0)
    pro_customers = models.PositiveIntegerField(default=0)
    pro_wrap_ups = models.PositiveIntegerField(default=0)
    most_held = models.PositiveIntegerField(default=0, help_text="wrap-ups of the customer who has most")
    sums = models.JSONField(default=list)
    alarms = models.JSONField(default=list)

    class Meta:
        db_table = "monthly_reports"

    def __str__(self) -> str:
        return f"{self.month:%B %Y}"


class TenantMonth(TenantModel):
    """What models were used for in a month, for one tenant. Micro-dollars of the calls whose price is known."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    month = models.DateField()
    calls = models.PositiveIntegerField(default=0)
    unpriced = models.PositiveIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(default=0)
    wrap_up_micros = models.PositiveBigIntegerField(default=0)
    wrap_ups = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "tenant_months"
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "month"], name="tenant_months_one_per_month")
        ]
        indexes = [models.Index(fields=["month", "-cost_micros"], name="tenant_months_dearest")]

    def __str__(self) -> str:
        return str(self.id)
