"""Reports of the months, and the look across tenants they are made by."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
from memberintel.tenancy.operations import Function, Protect

# Ids only: what they used is added up in their own scope.
OWNERS = """
CREATE FUNCTION app.ledger_owners(since uuid, until uuid) RETURNS TABLE (tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT call.tenant_id, call.customer_id FROM public.ledger AS call
  WHERE call.id >= since AND call.id < until
$$
"""
HOLDERS = """
CREATE FUNCTION app.wrap_up_holders(more_than integer) RETURNS TABLE (tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT log.tenant_id, log.customer_id FROM public.session_logs AS log
  GROUP BY 1, 2 HAVING count(*) > more_than
$$
"""
LOOK = """
CREATE POLICY ledger_callers ON ledger FOR SELECT TO sweeper USING (true);
GRANT SELECT (id, tenant_id, customer_id) ON ledger TO sweeper;
CREATE POLICY session_logs_holders ON session_logs FOR SELECT TO sweeper USING (true);
GRANT SELECT (id, tenant_id, customer_id) ON session_logs TO sweeper;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("usage", "0005_runs"),
        ("wrapups", "0004_runs"),
    ]

    operations = [
        migrations.CreateModel(
            name="MonthlyReport",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("month", models.DateField(help_text="its first day", unique=True)),
                ("made_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("tenants", models.PositiveIntegerField(default=0)),
                ("cost_micros", models.PositiveBigIntegerField(default=0)),
                ("pro_customers", models.PositiveIntegerField(default=0)),
                ("pro_wrap_ups", models.PositiveIntegerField(default=0)),
                (
                    "most_held",
                    models.PositiveIntegerField(default=0, help_text="wrap-ups of the customer who has most"),
                ),
                ("sums", models.JSONField(default=list)),
                ("alarms", models.JSONField(default=list)),
            ],
            options={
                "db_table": "monthly_reports",
            },
        ),
        migrations.CreateModel(
            name="TenantMonth",
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
                ("month", models.DateField()),
                ("calls", models.PositiveIntegerField(default=0)),
                ("unpriced", models.PositiveIntegerField(default=0)),
                ("cost_micros", models.PositiveBigIntegerField(default=0)),
                ("wrap_up_micros", models.PositiveBigIntegerField(default=0)),
                ("wrap_ups", models.PositiveIntegerField(default=0)),
            ],
            options={
                "db_table": "tenant_months",
                "base_manager_name": "objects",
                "indexes": [models.Index(fields=["month", "-cost_micros"], name="tenant_months_dearest")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant_id", "month"), name="tenant_months_one_per_month")
                ],
            },
        ),
        Protect("TenantMonth", private=False, web="", worker="SELECT, INSERT, UPDATE"),
        migrations.RunSQL(LOOK),
        Function("ledger_owners(uuid, uuid)", OWNERS, execute=("worker",), owner="sweeper"),
        Function("wrap_up_holders(integer)", HOLDERS, execute=("worker",), owner="sweeper"),
    ]
