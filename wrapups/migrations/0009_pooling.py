"""Pooling across tenants: the lock, each owner's word, groups, and who stands behind them."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import Function, Protect

# In how many tenants the rarest phrase of a group stands: the group's own number is never smaller.
RAREST = """
(SELECT min(each.tenants) FROM (
    SELECT count(DISTINCT support.tenant_id) AS tenants
    FROM generate_series(0, pooled.phrases - 1) AS number
    LEFT JOIN public.pooled_support AS support
      ON support.group_id = pooled.id AND support.phrases @> to_jsonb(number)
    GROUP BY number) AS each)
"""
STANDS = (
    "EXISTS (SELECT FROM public.legal_reviews AS review WHERE review.running AND review.ended_at IS NULL)"
)
SYSTEM = "'00000000-0000-0000-0000-000000000001'"

# The end of a run: its groups take the place of those before, as far as enough tenants stand behind every phrase now.
OPEN_POOL = f"""
CREATE FUNCTION app.open_pool(p_run uuid, p_least integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE opened integer;
BEGIN
  IF app.current_tenant() <> {SYSTEM} OR NOT {STANDS} THEN
    RAISE EXCEPTION 'pooling is not running' USING ERRCODE = 'MI005';
  END IF;
  DELETE FROM public.pooled_groups AS pooled
    WHERE pooled.run <> p_run OR coalesce({RAREST}, 0) < greatest(p_least, 5);
  DELETE FROM public.pooled_support AS support
    WHERE NOT EXISTS (SELECT FROM public.pooled_groups AS pooled WHERE pooled.id = support.group_id);
  UPDATE public.pooled_groups SET shown = true WHERE run = p_run;
  GET DIAGNOSTICS opened = ROW_COUNT;
  RETURN opened;
END $$
"""

# What staff may see: no tenant, no number; and no group of which a phrase stands in fewer than five tenants by now.
SHOWN_POOL = f"""
CREATE FUNCTION app.shown_pool()
RETURNS TABLE (id uuid, kind varchar, wording bytea, made_at timestamptz, draft uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT pooled.id, pooled.kind, pooled.wording, pooled.made_at, pooled.draft
  FROM public.pooled_groups AS pooled
  WHERE pooled.tenant_id = {SYSTEM} AND pooled.shown AND {STANDS} AND {RAREST} >= 5
$$
"""

NOTE_DRAFT = f"""
CREATE FUNCTION app.note_pool_draft(p_group uuid, p_draft uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE public.pooled_groups AS pooled SET draft = p_draft
    WHERE pooled.id = p_group AND pooled.shown AND {STANDS} AND {RAREST} >= 5;
  RETURN FOUND;
END $$
"""

# Bound to the caller's own tenant: nothing of any of its customers stands behind anything afterwards.
LEAVE_POOL = """
CREATE FUNCTION app.leave_pool() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE gone bigint; tenant uuid := app.current_tenant();
BEGIN
  DELETE FROM public.pooled_support WHERE tenant_id = tenant;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$
"""

CLEAR_POOL = f"""
CREATE FUNCTION app.clear_pool() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF {STANDS} THEN
    RAISE EXCEPTION 'pooling is running' USING ERRCODE = 'MI005';
  END IF;
  DELETE FROM public.pooled_support;
  DELETE FROM public.pooled_groups;
END $$
"""

# With the wrap-up goes what stands on it, also what is added at the same moment.
WITH_THE_WRAP_UP = """
ALTER TABLE pooled_support ADD FOREIGN KEY (tenant_id, customer_id, wrap_up_id)
  REFERENCES session_logs (tenant_id, customer_id, id) ON DELETE CASCADE;
GRANT SELECT ON legal_reviews TO sweeper, eraser;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("wrapups", "0008_charges"),
    ]

    operations = [
        migrations.CreateModel(
            name="PooledGroup",
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
                ("run", models.UUIDField(editable=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("decision", "Decided"), ("open_item", "Left open")],
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("wording", memberintel.vault.fields.SealedJSON(owner="system", row="pk")),
                ("phrases", models.PositiveSmallIntegerField(editable=False)),
                ("made_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("shown", models.BooleanField(default=False, editable=False)),
                ("draft", models.UUIDField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "pooled group",
                "db_table": "pooled_groups",
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.CreateModel(
            name="LegalReview",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "reference",
                    models.CharField(
                        help_text="Who reviewed it, when, and where their opinion is kept.", max_length=200
                    ),
                ),
                (
                    "ground",
                    models.CharField(
                        choices=[
                            ("consent", "With consent: only accounts whose owner said yes"),
                            ("notice", "With notice: all accounts but those whose owner said no"),
                        ],
                        default="consent",
                        max_length=10,
                    ),
                ),
                ("recorded_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("recorded_by", models.UUIDField(editable=False)),
                ("running", models.BooleanField(default=False, editable=False)),
                ("ended_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "db_table": "legal_reviews",
                "default_permissions": ("view", "add", "change"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("running", False), ("ended_at", None), _connector="OR"),
                        name="legal_reviews_ended_is_off",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PooledSupport",
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
                ("wrap_up_id", models.UUIDField(editable=False)),
                ("group_id", models.UUIDField(editable=False)),
                ("phrases", models.JSONField(default=list, editable=False)),
            ],
            options={
                "db_table": "pooled_support",
                "indexes": [models.Index(fields=["group_id"], name="pooled_support_of_group")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "wrap_up_id", "group_id"), name="pooled_support_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PoolingChoice",
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
                ("takes_part", models.BooleanField(default=False, editable=False)),
            ],
            options={
                "db_table": "pooling_choices",
                "indexes": [models.Index(fields=["tenant_id", "-id"], name="pooling_choices_newest")],
            },
        ),
        Protect("PoolingChoice", private=False, web="SELECT, INSERT", worker="SELECT"),
        Protect(
            "PooledGroup",
            private=False,
            web="",
            worker="SELECT, INSERT",
            definers={"sweeper": "SELECT", "eraser": "SELECT, UPDATE (shown, draft), DELETE"},
            staff=("backup",),
        ),
        Protect(
            "PooledSupport",
            web="SELECT, DELETE",
            worker="SELECT, INSERT",
            definers={"sweeper": "SELECT", "eraser": "SELECT, DELETE"},
            staff=("backup",),
        ),
        migrations.RunSQL(WITH_THE_WRAP_UP, migrations.RunSQL.noop),
        Function("open_pool(uuid, integer)", OPEN_POOL, execute=("worker_tenant",), owner="eraser"),
        Function("shown_pool()", SHOWN_POOL, execute=("support",), owner="sweeper"),
        Function("note_pool_draft(uuid, uuid)", NOTE_DRAFT, execute=("support",), owner="eraser"),
        Function("leave_pool()", LEAVE_POOL, execute=("web_tenant",), owner="eraser"),
        Function("clear_pool()", CLEAR_POOL, execute=("support",), owner="eraser"),
    ]
