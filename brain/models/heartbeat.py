"""A tenant's sites, where their numbers come from, the numbers day by day, and what they tell."""

from __future__ import annotations

from django.db import models

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import TenantModel
from memberintel.vault.fields import SealedJSON, SealedText

SOURCES = [("stripe", "Stripe"), ("memberpress", "MemberPress"), ("csv", "CSV file")]
STATES = [("connected", "connected"), ("failing", "failing"), ("disconnected", "disconnected")]


class Site(TenantModel):
    """A membership site. Days are counted in its time zone. `lease_until`: a sync is at work on it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = SealedText(owner="tenant")
    time_zone = models.CharField(max_length=64, default="UTC")
    created_at = models.DateTimeField(default=clock.now, editable=False)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "sites"
        indexes = [models.Index(fields=["tenant_id", "id"], name="sites_of_tenant")]

    def __str__(self) -> str:
        return str(self.id)


class Source(TenantModel):
    """Where a site's numbers come from. Without credentials it is not asked; its numbers stay.

    `due_at` is when it is asked next, `through` the last day it gave, `last_error` a code without content.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site_id = models.UUIDField(editable=False)
    kind = models.CharField(max_length=12, choices=SOURCES)
    state = models.CharField(max_length=12, choices=STATES, default="connected")
    credentials = SealedJSON(owner="tenant", null=True)
    due_at = models.DateTimeField(null=True)
    through = models.DateField(null=True)
    last_synced_at = models.DateTimeField(null=True)
    last_tried_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=40, blank=True, default="")
    failures = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "sources"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "site_id", "kind"], name="sources_one_of_a_kind"),
        ]
        indexes = [
            models.Index(fields=["site_id"], name="sources_due", condition=models.Q(due_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class MetricSnapshot(TenantModel):
    """The numbers of one day, as one source gave them: brain.domain.heartbeat.metrics says which."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site_id = models.UUIDField(editable=False)
    kind = models.CharField(max_length=12, choices=SOURCES)
    day = models.DateField()
    numbers = SealedJSON(owner="tenant")
    taken_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "metric_snapshots"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "site_id", "kind", "day"], name="metric_snapshots_one_a_day"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.day}"


class Heartbeat(TenantModel):
    """What a site's numbers told, as of a day. The newest is read into prompts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site_id = models.UUIDField(editable=False)
    day = models.DateField()
    narrative = SealedText(owner="tenant")
    made_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "heartbeats"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "site_id", "day"], name="heartbeats_one_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.day}"
