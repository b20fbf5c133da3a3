"""What a customer told us about themselves."""

from __future__ import annotations

from django.db import models

from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel
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
