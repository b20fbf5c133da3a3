"""The record of who did what to whom, the grants under which staff look, and what staff ask a second person for."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy import staff
from memberintel.tenancy.models import PrivateModel, TenantModel
from memberintel.vault.cipher import Place
from memberintel.vault.fields import SealedText
from memberintel.vault.keyring import key_of
from memberintel.vault.owner import Owner

CUSTOMER, COLLEAGUE, SYSTEM, NOBODY = "customer", "colleague", "system", "nobody"
ROLES = [(role, role) for role in (CUSTOMER, COLLEAGUE, SYSTEM, NOBODY, *staff.ROLES)]


class SealedReason(SealedText):
    """Text under the key of the row's customer; of its tenant, where the row is about no one customer."""

    def place_on(self, instance: Any) -> Place:
        return Place(
            instance.tenant_id,
            instance.customer_id,
            self.model._meta.db_table,
            str(self.column),
            instance.pk,
        )

    def _key(self, place: Place) -> Any:
        return key_of(Owner("customer" if place.customer else "tenant", place.tenant, place.customer))


class AccessGrant(PrivateModel):
    """Leave for one member of staff to open one customer's content for a while, for a reason."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    staff = models.UUIDField()
    reason = SealedText()
    given_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # given back before its time

    class Meta:
        db_table = "access_grants"
        base_manager_name = "objects"
        default_permissions = ("view",)
        permissions = [
            ("open_content", "Can open a customer's content with a reason"),
            ("edit_content", "Can edit a customer's content on their behalf"),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "customer_id", "staff", "expires_at"], name="access_grants_standing"
            )
        ]

    def __str__(self) -> str:
        return f"grant {self.id}"


class AuditRow(TenantModel):
    """One thing that was done, by whom, to whom and why. Added, and never changed or deleted.

    `customer_id` is whom it was done to; null when it concerns a tenant as a whole, or (in the system tenant)
    none. `what` names a kind and an id, never a text.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    customer_id = models.UUIDField(null=True, editable=False)
    at = models.DateTimeField(default=clock.now)
    action = models.CharField(max_length=40)
    actor = models.UUIDField(null=True)
    role = models.CharField(max_length=16, choices=ROLES)  # of the actor, at the time
    what = models.CharField(max_length=120, blank=True)
    grant_id = models.UUIDField(null=True)
    reason = SealedReason(null=True)

    class Meta:
        db_table = "audit"
        base_manager_name = "objects"
        verbose_name = "audit row"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["tenant_id", "id"], name="audit_tenant"),
            models.Index(
                fields=["tenant_id", "id"], name="audit_by_staff", condition=Q(role__in=list(staff.ROLES))
            ),
            models.Index(fields=["actor", "id"], name="audit_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"


class StaffRequest(TenantModel):
    """What one member of staff asks for and another decides; `customer_id` is null when it is about the tenant."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    customer_id = models.UUIDField(null=True, editable=False)
    action = models.CharField(max_length=20, choices=[("erase", "erase")])
    reason = SealedReason()
    asked_by = models.UUIDField()
    asked_at = models.DateTimeField(default=clock.now)
    decision = models.CharField(
        max_length=10,
        blank=True,
        choices=[("approved", "approved"), ("declined", "declined"), ("withdrawn", "withdrawn")],
    )
    decided_by = models.UUIDField(null=True)
    decided_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)  # an approved one, once it is carried out

    class Meta:
        db_table = "staff_requests"
        base_manager_name = "objects"
        verbose_name = "request"
        default_permissions = ("view",)
        permissions = [
            ("ask_erasure", "Can ask for an erasure"),
            ("approve_erasure", "Can approve an erasure somebody else asked for"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "customer_id", "action"],
                condition=Q(decision="") | Q(decision="approved", done_at=None),
                nulls_distinct=False,
                name="staff_requests_one_open",
            ),
            models.CheckConstraint(
                condition=Q(decision="", decided_by=None, decided_at=None)
                | (~Q(decision="") & Q(decided_by__isnull=False, decided_at__isnull=False)),
                name="staff_requests_decided_by_somebody",
            ),
            models.CheckConstraint(
                condition=~Q(decision="approved") | ~Q(decided_by=F("asked_by")),
                name="staff_requests_second_person",
            ),
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(decision="approved"), name="staff_requests_done_once_approved"
            ),
        ]
        indexes = [models.Index(fields=["id"], name="staff_requests_open", condition=Q(decision=""))]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"


class Erasure(models.Model):
    """The erasure of a customer, or (without a `person`) of a tenant: asked for, under way, or done. Ids and counts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.UUIDField(editable=False)  # the tenant; another name, since this table belongs to none
    person = models.UUIDField(null=True, editable=False)
    asked_by = models.UUIDField(editable=False)
    request = models.UUIDField(null=True, editable=False)  # of staff, where two of them wanted it
    asked_at = models.DateTimeField(default=clock.now, editable=False)
    step = models.CharField(max_length=60, default="")
    counts = models.JSONField(default=dict)
    keys_gone_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "erasures"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "person"],
                condition=Q(finished_at=None),
                nulls_distinct=False,
                name="erasures_one_at_a_time",
            )
        ]
        indexes = [models.Index(fields=["id"], name="erasures_unfinished", condition=Q(finished_at=None))]

    def __str__(self) -> str:
        return f"erasure {self.id}"
