"""Wrapped data keys and the key-encryption keys they need: schema `vault`, which the backup login cannot read."""

from __future__ import annotations

from django.db import models
from django.db.models import Func, Q

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import TenantModel


class TransactionId(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """The transaction that made a row (xid8)."""

    def db_type(self, connection: object) -> str:
        return "xid8"


class CurrentTransactionId(Func):
    """The id of the present transaction, savepoints not counted apart."""

    function = "pg_current_xact_id"
    output_field = TransactionId()


class KnownKek(models.Model):
    """A key-encryption key that wraps data keys here, by its fingerprint; once retired it may never again."""

    fingerprint = models.CharField(max_length=64, primary_key=True)
    first_seen = models.DateTimeField(default=clock.now, editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = '"vault"."keks"'

    def __str__(self) -> str:
        return self.fingerprint


class DataKey(TenantModel):
    """The data key of a customer, a tenant or the system, wrapped by a key-encryption key.

    A destroyed key leaves its row without the key, so that it is never made anew.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=8, choices=[(kind, kind) for kind in ("customer", "tenant", "system")])
    customer_id = models.UUIDField(null=True, editable=False)
    wrapped = models.BinaryField(null=True)
    kek = models.ForeignKey(KnownKek, on_delete=models.PROTECT, null=True, db_column="kek", db_index=False)
    # A key may be cached once its transaction has committed; this tells a reader that it stands inside it.
    made_in = TransactionId(db_default=CurrentTransactionId(), editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    destroyed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = '"vault"."data_keys"'
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "kind", "customer_id"], nulls_distinct=False, name="data_keys_owner"
            ),
            models.CheckConstraint(
                condition=Q(kind="customer", customer_id__isnull=False)
                | (Q(kind__in=("tenant", "system")) & Q(customer_id__isnull=True)),
                name="data_keys_customer_named",
            ),
            models.CheckConstraint(
                condition=Q(wrapped__isnull=False, kek__isnull=False, destroyed_at__isnull=True)
                | Q(wrapped__isnull=True, kek__isnull=True, destroyed_at__isnull=False),
                name="data_keys_whole_or_destroyed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} key {self.id}"


class Unopened(models.Model):
    """A sealed value somebody came across and that did not open: `place` is table and column. See `damage`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    place = models.CharField(max_length=120)
    row_id = models.UUIDField()
    first_at = models.DateTimeField(default=clock.now)
    last_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "unopened"
        constraints = [models.UniqueConstraint(fields=["place", "row_id"], name="unopened_once")]
        indexes = [models.Index(fields=["-last_at"], name="unopened_recent")]

    def __str__(self) -> str:
        return f"{self.place} of {self.row_id}"
