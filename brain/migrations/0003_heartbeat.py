from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import Function, LetDefinerIn, Protect, TenantForeignKey

# Ids only: which sites have something to ask for, whoever's they are.
DUE_SITES = """
CREATE FUNCTION app.due_sites(most integer, as_of timestamptz, past uuid)
RETURNS TABLE (id uuid, tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT source.site_id, source.tenant_id FROM public.sources AS source
  WHERE source.due_at <= as_of AND source.site_id > past
  GROUP BY source.site_id, source.tenant_id ORDER BY source.site_id LIMIT most
$$
"""

# A site is seen by every colleague, so what it told stands in the prompts of all of them: whose prompts those are
# is not the caller's to see, and so a function takes it out of them. Bound to the caller's own tenant.
FORGET_HEARTBEATS = """
CREATE FUNCTION app.forget_heartbeats(site uuid, today date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE touched integer;
BEGIN
  UPDATE public.prompt_parts AS part SET text = NULL, removed_on = today
    WHERE part.tenant_id = app.current_tenant() AND part.source_kind = 'heartbeat' AND part.removed_on IS NULL
      AND part.source_id IN (SELECT beat.id FROM public.heartbeats AS beat
                             WHERE beat.tenant_id = app.current_tenant() AND beat.site_id = site);
  GET DIAGNOSTICS touched = ROW_COUNT;
  DELETE FROM public.heartbeats AS beat WHERE beat.tenant_id = app.current_tenant() AND beat.site_id = site;
  RETURN touched;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("brain", "0002_versions"),
    ]

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
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
                ("site_id", models.UUIDField(editable=False)),
                ("day", models.DateField()),
                ("narrative", memberintel.vault.fields.SealedText(owner="tenant", row="pk")),
                ("made_at", models.DateTimeField(default=memberintel.lib.clock.now)),
            ],
            options={
                "db_table": "heartbeats",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "site_id", "day"), name="heartbeats_one_a_day"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MetricSnapshot",
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
                ("site_id", models.UUIDField(editable=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("stripe", "Stripe"), ("memberpress", "MemberPress"), ("csv", "CSV file")],
                        max_length=12,
                    ),
                ),
                ("day", models.DateField()),
                ("numbers", memberintel.vault.fields.SealedJSON(owner="tenant", row="pk")),
                ("taken_at", models.DateTimeField(default=memberintel.lib.clock.now)),
            ],
            options={
                "db_table": "metric_snapshots",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "site_id", "kind", "day"), name="metric_snapshots_one_a_day"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Site",
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
                ("name", memberintel.vault.fields.SealedText(owner="tenant", row="pk")),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("created_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("lease_until", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "sites",
                "indexes": [models.Index(fields=["tenant_id", "id"], name="sites_of_tenant")],
            },
        ),
        migrations.CreateModel(
            name="Source",
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
                ("site_id", models.UUIDField(editable=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("stripe", "Stripe"), ("memberpress", "MemberPress"), ("csv", "CSV file")],
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("connected", "connected"),
                            ("failing", "failing"),
                            ("disconnected", "disconnected"),
                        ],
                        default="connected",
                        max_length=12,
                    ),
                ),
                ("credentials", memberintel.vault.fields.SealedJSON(null=True, owner="tenant", row="pk")),
                ("due_at", models.DateTimeField(null=True)),
                ("through", models.DateField(null=True)),
                ("last_synced_at", models.DateTimeField(null=True)),
                ("last_tried_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, default="", max_length=40)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
            ],
            options={
                "db_table": "sources",
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["site_id"], name="sources_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "site_id", "kind"), name="sources_one_of_a_kind"
                    )
                ],
            },
        ),
        Protect("Site", private=False, worker="SELECT, UPDATE (lease_until)", referenced=True),
        Protect(
            "Source",
            private=False,
            worker="SELECT, UPDATE",
            definers={"sweeper": "SELECT (site_id, tenant_id, due_at)"},
        ),
        Protect("MetricSnapshot", private=False, worker="SELECT, INSERT, UPDATE"),
        Protect(
            "Heartbeat",
            private=False,
            web="SELECT, INSERT, UPDATE",
            worker="SELECT, INSERT, UPDATE",
            definers={"eraser": "SELECT, DELETE"},
        ),
        TenantForeignKey("Source", "site_id", "sites", private=False),
        TenantForeignKey("MetricSnapshot", "site_id", "sites", private=False),
        TenantForeignKey("Heartbeat", "site_id", "sites", private=False),
        LetDefinerIn("PromptPart", "eraser", "SELECT, UPDATE (text, removed_on)"),
        Function(
            "due_sites(integer, timestamptz, uuid)", DUE_SITES, execute=("app_common",), owner="sweeper"
        ),
        Function("forget_heartbeats(uuid, date)", FORGET_HEARTBEATS, execute=("web_tenant",), owner="eraser"),
    ]
