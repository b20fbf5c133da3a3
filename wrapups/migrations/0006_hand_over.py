"""The hand-over to an external memory: an owner's word on it, what stands there, what is to go from there."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
from memberintel.tenancy.operations import Function, Protect

# Ids only: what is handed over is read in its own customer's scope.
DUE_HAND_OVERS = """
CREATE FUNCTION app.due_hand_overs(most integer, at timestamptz)
RETURNS TABLE (id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT row.id, row.tenant_id, row.customer_id FROM public.hand_overs AS row
  WHERE row.state = 'pending' AND row.next_try_at <= at
  ORDER BY row.next_try_at LIMIT most
$$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("wrapups", "0005_journal"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExternalDeletion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("namespace", models.CharField(max_length=60)),
                ("document", models.CharField(blank=True, default="", max_length=60)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("last_error", models.CharField(blank=True, default="", max_length=60)),
            ],
            options={
                "db_table": "external_deletions",
                "indexes": [models.Index(fields=["next_try_at"], name="external_deletions_due")],
            },
        ),
        migrations.CreateModel(
            name="HandOver",
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
                ("document", models.CharField(max_length=60)),
                ("session_id", models.UUIDField(null=True)),
                ("day", models.DateField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("done", "Done"), ("failed", "Failed")],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("changed", models.PositiveIntegerField(default=0)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_try_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("last_error", models.CharField(blank=True, default="", max_length=60)),
                ("handed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "hand_overs",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["next_try_at"],
                        name="hand_overs_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "customer_id", "document"), name="hand_overs_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HandOverConsent",
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
                ("by", models.UUIDField(editable=False)),
                ("at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
            ],
            options={
                "db_table": "hand_over_consents",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant_id", "by"), name="hand_over_consents_once")
                ],
            },
        ),
        Protect("HandOverConsent", private=False, worker="SELECT"),
        Protect("HandOver", definers={"sweeper": "SELECT"}),
        Function(
            "due_hand_overs(integer, timestamptz)", DUE_HAND_OVERS, execute=("app_common",), owner="sweeper"
        ),
    ]
