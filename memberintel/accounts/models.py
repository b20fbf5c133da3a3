"""What a customer told us about themselves, who was asked to join them, and their tokens of the API."""

from __future__ import annotations

from django.db import models

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel, TenantModel
from memberintel.vault.fields import SealedText


class Profile(PrivateModel):
    """One row per customer, made when they first save something."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    display_name = SealedText(default="")
    time_zone = models.CharField(max_length=64, default="UTC")
    language = models.CharField(max_length=8, default="en")

    class Meta:
        db_table = "profiles"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "customer_id"], name="profiles_one_per_customer"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Invitation(TenantModel):
    """Somebody an owner asked to join the tenant; open until accepted, withdrawn or expired.

    It belongs to the tenant, also for whoever follows the link in the letter: the signed link names the tenant,
    and the row is read in that scope. So no list of who was invited stands outside of a tenant.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField()
    invited_by = models.UUIDField()
    created_at = models.DateTimeField(default=clock.now)
    sent_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.UUIDField(null=True)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "invitations"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "email"],
                condition=models.Q(accepted_at=None, withdrawn_at=None),
                name="invitations_one_open",
            ),
            models.CheckConstraint(
                condition=models.Q(accepted_at=None, accepted_by=None)
                | models.Q(accepted_at__isnull=False, accepted_by__isnull=False),
                name="invitations_accepted_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ApiToken(PrivateModel):
    """A personal token of the API. The token itself is shown once, when it is made; its digest is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = SealedText()
    prefix = models.CharField(max_length=12)
    digest = models.BinaryField(max_length=32)
    scopes = models.CharField(max_length=100)  # names with blanks between them
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)  # to the hour: it tells a dead token from a live one
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "api_tokens"
        base_manager_name = "objects"
        indexes = [
            # Not unique: a unique index over all tenants answers whether a value exists.
            models.Index(fields=["digest"], name="api_tokens_digest"),
            models.Index(fields=["tenant_id", "customer_id"], name="api_tokens_customer"),
        ]

    def __str__(self) -> str:
        return f"token {self.prefix}…"
