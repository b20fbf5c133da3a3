"""What pooling keeps: the word of the lawyers, the word of each owner, and groups with who stands behind them."""

from __future__ import annotations

from django.db import models

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel, TenantModel
from memberintel.vault.fields import SealedJSON


class LegalReview(models.Model):
    """A legal review of pooling, recorded by staff. Without one that stands and is `running` nothing is computed.

    `ground` says who takes part: with consent only tenants whose owner said yes, with notice all but those whose owner
    said no. Belongs to no tenant.
    """

    class Ground(models.TextChoices):
        CONSENT = "consent", "With consent: only accounts whose owner said yes"
        NOTICE = "notice", "With notice: all accounts but those whose owner said no"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    reference = models.CharField(
        max_length=200, help_text="Who reviewed it, when, and where their opinion is kept."
    )
    ground = models.CharField(max_length=10, choices=Ground, default=Ground.CONSENT)
    recorded_at = models.DateTimeField(default=clock.now, editable=False)
    recorded_by = models.UUIDField(editable=False)
    running = models.BooleanField(default=False, editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "legal_reviews"
        default_permissions = ("view", "add", "change")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(running=False) | models.Q(ended_at=None), name="legal_reviews_ended_is_off"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class PoolingChoice(TenantModel):
    """What an owner said about pooling. Only ever added; the newest of a tenant counts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    by = models.UUIDField(editable=False)
    at = models.DateTimeField(default=clock.now, editable=False)
    takes_part = models.BooleanField(default=False, editable=False)

    class Meta:
        db_table = "pooling_choices"
        indexes = [models.Index(fields=["tenant_id", "-id"], name="pooling_choices_newest")]

    def __str__(self) -> str:
        return str(self.id)


class PooledGroup(TenantModel):
    """Items of several tenants that mean alike, as far as staff may see them. Of the system tenant.

    `wording` is a list of phrases, each of which stands in items of enough tenants; `phrases` is how many. `draft` is
    the article staff wrote of it.
    """

    class Kind(models.TextChoices):
        DECISION = "decision", "Decided"
        OPEN_ITEM = "open_item", "Left open"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.UUIDField(editable=False)
    kind = models.CharField(max_length=10, choices=Kind, editable=False)
    wording = SealedJSON(owner="system")
    phrases = models.PositiveSmallIntegerField(editable=False)
    made_at = models.DateTimeField(default=clock.now, editable=False)
    shown = models.BooleanField(default=False, editable=False)
    draft = models.UUIDField(null=True, editable=False)

    class Meta:
        db_table = "pooled_groups"
        verbose_name = "pooled group"
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return str(self.id)


class PooledSupport(PrivateModel):
    """A wrap-up stands behind a group, and behind those of its phrases whose numbers are listed. Ids alone, read by no
    login of staff; it goes with the wrap-up."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    wrap_up_id = models.UUIDField(editable=False)
    group_id = models.UUIDField(editable=False)
    phrases = models.JSONField(default=list, editable=False)

    class Meta:
        db_table = "pooled_support"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "wrap_up_id", "group_id"], name="pooled_support_once"
            ),
        ]
        indexes = [models.Index(fields=["group_id"], name="pooled_support_of_group")]

    def __str__(self) -> str:
        return str(self.id)
