"""The tables of schema `vault`, which `make roles` creates, and the only way a key is ever destroyed."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.models
from memberintel.tenancy.operations import CUSTOMER_OR_NONE, TENANT, Function, Protect

# A scope with a tenant only reaches the tenant's own key; one with a customer reaches that customer's too.
IN_SCOPE = f"{TENANT} AND (customer_id IS NULL OR customer_id = {CUSTOMER_OR_NONE})"

# The tombstone is inserted first: that waits for a key being made at the same moment, which then falls too.
DESTROY_CUSTOMER_KEY = """
CREATE FUNCTION app.destroy_customer_key() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tenant uuid := app.current_tenant();
  customer uuid := app.current_customer();
  destroyed integer;
BEGIN
  INSERT INTO vault.data_keys (id, tenant_id, kind, customer_id, created_at, destroyed_at)
    VALUES (gen_random_uuid(), tenant, 'customer', customer, now(), now()) ON CONFLICT DO NOTHING;
  UPDATE vault.data_keys SET wrapped = NULL, kek = NULL, destroyed_at = now()
    WHERE tenant_id = tenant AND customer_id = customer AND destroyed_at IS NULL;
  GET DIAGNOSTICS destroyed = ROW_COUNT;
  RETURN destroyed;
END $$
"""

# The lock waits for keys of the tenant's customers being made, and makes later ones see the tombstone.
DESTROY_TENANT_KEYS = """
CREATE FUNCTION app.destroy_tenant_keys() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tenant uuid := app.current_tenant();
  destroyed integer;
BEGIN
  LOCK TABLE vault.data_keys IN SHARE ROW EXCLUSIVE MODE;
  INSERT INTO vault.data_keys (id, tenant_id, kind, created_at, destroyed_at)
    VALUES (gen_random_uuid(), tenant, 'tenant', now(), now()) ON CONFLICT DO NOTHING;
  UPDATE vault.data_keys SET wrapped = NULL, kek = NULL, destroyed_at = now()
    WHERE tenant_id = tenant AND destroyed_at IS NULL;
  GET DIAGNOSTICS destroyed = ROW_COUNT;
  RETURN destroyed;
END $$
"""

CALLERS = ("web_tenant", "worker_tenant")


class Migration(migrations.Migration):
    initial = True

    dependencies = [("tenancy", "0002_scope")]

    operations = [
        migrations.CreateModel(
            name="KnownKek",
            fields=[
                ("fingerprint", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("first_seen", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("retired_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={"db_table": '"vault"."keks"'},
        ),
        migrations.CreateModel(
            name="DataKey",
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
                (
                    "kind",
                    models.CharField(
                        choices=[("customer", "customer"), ("tenant", "tenant"), ("system", "system")],
                        max_length=8,
                    ),
                ),
                ("customer_id", models.UUIDField(editable=False, null=True)),
                ("wrapped", models.BinaryField(null=True)),
                (
                    "made_in",
                    memberintel.vault.models.TransactionId(
                        db_default=memberintel.vault.models.CurrentTransactionId(), editable=False
                    ),
                ),
                ("created_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("destroyed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "kek",
                    models.ForeignKey(
                        db_column="kek",
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="vault.knownkek",
                    ),
                ),
            ],
            options={
                "db_table": '"vault"."data_keys"',
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["tenant_id", "kind", "customer_id"],
                        name="data_keys_owner",
                        nulls_distinct=False,
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
                ],
            },
        ),
        # Nobody but these functions changes a key, and staff and backups never see one, wrapped or not.
        Protect(
            "DataKey",
            policy=IN_SCOPE,
            web="SELECT, INSERT",
            worker="SELECT, INSERT",
            definers={"eraser": "SELECT, INSERT, UPDATE"},
            staff=(),
        ),
        Function("destroy_customer_key()", DESTROY_CUSTOMER_KEY, owner="eraser", execute=CALLERS),
        Function("destroy_tenant_keys()", DESTROY_TENANT_KEYS, owner="eraser", execute=CALLERS),
    ]
