from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.privacy.models
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import CUSTOMER_OR_NONE, TENANT, Protect, TenantForeignKey

# What is about one customer, and what is about the tenant as a whole.
IN_SCOPE = f"{TENANT} AND (customer_id IS NULL OR customer_id = {CUSTOMER_OR_NONE})"


class Migration(migrations.Migration):
    initial = True

    dependencies = [("tenancy", "0005_colleagues"), ("vault", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="AccessGrant",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_tenant_id, editable=False),
                ),
                (
                    "customer_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_customer_id, editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("staff", models.UUIDField()),
                ("reason", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("given_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "access_grants",
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(
                        fields=["tenant_id", "customer_id", "staff", "expires_at"],
                        name="access_grants_standing",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditRow",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_tenant_id, editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("customer_id", models.UUIDField(editable=False, null=True)),
                ("at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("action", models.CharField(max_length=40)),
                ("actor", models.UUIDField(null=True)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("customer", "customer"),
                            ("colleague", "colleague"),
                            ("system", "system"),
                            ("nobody", "nobody"),
                            ("lead", "lead"),
                            ("support", "support"),
                            ("engineer", "engineer"),
                            ("administrator", "administrator"),
                            ("staff", "staff"),
                        ],
                        max_length=16,
                    ),
                ),
                ("what", models.CharField(blank=True, max_length=120)),
                ("grant_id", models.UUIDField(null=True)),
                ("reason", memberintel.privacy.models.SealedReason(null=True, owner="customer", row="pk")),
            ],
            options={
                "verbose_name": "audit row",
                "db_table": "audit",
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(fields=["tenant_id", "id"], name="audit_tenant"),
                    models.Index(
                        condition=models.Q(
                            ("role__in", ["lead", "support", "engineer", "administrator", "staff"])
                        ),
                        fields=["tenant_id", "id"],
                        name="audit_by_staff",
                    ),
                    models.Index(fields=["actor", "id"], name="audit_actor"),
                ],
            },
        ),
        migrations.CreateModel(
            name="StaffRequest",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_tenant_id, editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("customer_id", models.UUIDField(editable=False, null=True)),
                ("action", models.CharField(choices=[("erase", "erase")], max_length=20)),
                ("reason", memberintel.privacy.models.SealedReason(owner="customer", row="pk")),
                ("asked_by", models.UUIDField()),
                ("asked_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                (
                    "decision",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("approved", "approved"),
                            ("declined", "declined"),
                            ("withdrawn", "withdrawn"),
                        ],
                        max_length=10,
                    ),
                ),
                ("decided_by", models.UUIDField(null=True)),
                ("decided_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "staff_requests",
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(
                        condition=models.Q(("decision", "")), fields=["id"], name="staff_requests_open"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("decision", ""),
                            models.Q(("decision", "approved"), ("done_at", None)),
                            _connector="OR",
                        ),
                        fields=("tenant_id", "customer_id", "action"),
                        name="staff_requests_one_open",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("decided_by", None), ("decision", "")),
                            models.Q(
                                models.Q(("decision", ""), _negated=True),
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="staff_requests_decided_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decision", "approved"), _negated=True),
                            models.Q(("decided_by", models.F("asked_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="staff_requests_second_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("done_at", None), ("decision", "approved"), _connector="OR"),
                        name="staff_requests_done_once_approved",
                    ),
                ],
            },
        ),
        Protect("AccessGrant", web="SELECT, INSERT, UPDATE (ended_at)", worker="SELECT", referenced=True),
        Protect(
            "AuditRow",
            policy=IN_SCOPE,
            web="SELECT, INSERT",
            worker="SELECT, INSERT",
            append_only=True,
        ),
        TenantForeignKey("AuditRow", "grant_id", "access_grants"),
        Protect(
            "StaffRequest",
            policy=IN_SCOPE,
            web="SELECT, INSERT, UPDATE (decision, decided_by, decided_at, done_at)",
            worker="SELECT, UPDATE (done_at)",
        ),
    ]
