"""The erasure of an account: its runs, and the functions that delete rows once nobody can read them any more."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
from memberintel.tenancy.operations import Function

# Bound to the caller's own tenant and customer, whose key must be destroyed. What the eraser may delete from is what
# `memberintel.privacy.reach` lets it into; events go through `app.erase_session` alone.
ERASE_ROWS = """
CREATE FUNCTION app.erase_rows(p_table text, p_most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE tenant uuid := app.current_tenant(); customer uuid := app.current_customer(); erased bigint;
BEGIN
  IF p_table IN ('session_events', 'audit', 'access_grants', 'staff_requests', 'ledger') OR NOT EXISTS (
      SELECT FROM vault.data_keys k WHERE k.tenant_id = tenant AND k.customer_id = customer
        AND k.kind = 'customer' AND k.destroyed_at IS NOT NULL) THEN
    RAISE EXCEPTION 'there is no reason to erase these rows' USING ERRCODE = 'MI004';
  END IF;
  EXECUTE format('DELETE FROM public.%1$I WHERE ctid = ANY (ARRAY (SELECT ctid FROM public.%1$I'
                 ' WHERE tenant_id = $1 AND customer_id = $2 LIMIT $3))', p_table)
    USING tenant, customer, p_most;
  GET DIAGNOSTICS erased = ROW_COUNT;
  RETURN erased;
END $$
"""

# What belongs to the tenant as a whole, once the tenant's own key is destroyed.
ERASE_TENANT_ROWS = """
CREATE FUNCTION app.erase_tenant_rows(p_table text, p_most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE tenant uuid := app.current_tenant(); erased bigint;
BEGIN
  IF p_table IN ('session_events', 'audit', 'access_grants', 'staff_requests', 'ledger') OR NOT EXISTS (
      SELECT FROM vault.data_keys k WHERE k.tenant_id = tenant AND k.kind = 'tenant' AND k.destroyed_at IS NOT NULL)
  THEN
    RAISE EXCEPTION 'there is no reason to erase these rows' USING ERRCODE = 'MI004';
  END IF;
  EXECUTE format('DELETE FROM public.%1$I WHERE ctid = ANY (ARRAY (SELECT ctid FROM public.%1$I'
                 ' WHERE tenant_id = $1 LIMIT $2))', p_table)
    USING tenant, p_most;
  GET DIAGNOSTICS erased = ROW_COUNT;
  RETURN erased;
END $$
"""

# Calls stay for the sums, nobody's from then on; invitations that name the address go.
FORGET_NAMES = """
CREATE FUNCTION app.forget_names(p_email text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE tenant uuid := app.current_tenant(); customer uuid := app.current_customer(); freed bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM vault.data_keys k WHERE k.tenant_id = tenant AND k.customer_id = customer
                   AND k.kind = 'customer' AND k.destroyed_at IS NOT NULL) THEN
    RAISE EXCEPTION 'there is no reason to forget this name' USING ERRCODE = 'MI004';
  END IF;
  UPDATE public.ledger SET customer_id = NULL, session = NULL, turn = NULL
    WHERE tenant_id = tenant AND customer_id = customer;
  GET DIAGNOSTICS freed = ROW_COUNT;
  DELETE FROM public.invitations
    WHERE tenant_id = tenant AND (email = p_email OR accepted_by = customer OR invited_by = customer);
  RETURN freed;
END $$
"""

CALLERS = ("web_tenant", "worker_tenant")


class Migration(migrations.Migration):
    dependencies = [
        ("privacy", "0002_permissions"),
        ("accounts", "0003_colleagues"),
        ("usage", "0004_charges"),
        ("vault", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("account", models.UUIDField(editable=False)),
                ("person", models.UUIDField(editable=False, null=True)),
                ("asked_by", models.UUIDField(editable=False)),
                ("request", models.UUIDField(editable=False, null=True)),
                ("asked_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("step", models.CharField(default="", max_length=60)),
                ("counts", models.JSONField(default=dict)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "erasures",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)),
                        fields=("account", "person"),
                        name="erasures_one_at_a_time",
                        nulls_distinct=False,
                    )
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at", None)), fields=["id"], name="erasures_unfinished"
                    )
                ],
            },
        ),
        Function("erase_rows(text, integer)", ERASE_ROWS, owner="eraser", execute=CALLERS),
        Function("erase_tenant_rows(text, integer)", ERASE_TENANT_ROWS, owner="eraser", execute=CALLERS),
        Function("forget_names(text)", FORGET_NAMES, owner="eraser", execute=CALLERS),
    ]
