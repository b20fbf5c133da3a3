"""Budgets of the tiers, what was taken of them, and the functions that take and give back."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
from memberintel.tenancy.operations import Function, Protect

# The charge first, then its counter, here and below: one order, so that nobody waits in a circle. An insert that
# meets a row being taken or given back waits for its end.
TAKE = """
CREATE FUNCTION app.take_charge(p_id uuid, p_kind text, p_key uuid, p_month date, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE tenant uuid := app.current_tenant(); most integer; times smallint;
BEGIN
  INSERT INTO public.charges (id, tenant_id, kind, key, month, taken_at, resets)
    VALUES (p_id, tenant, p_kind, p_key, p_month, p_at, 0) ON CONFLICT (tenant_id, kind, key) DO NOTHING;
  IF NOT FOUND THEN
    RETURN true;
  END IF;
  SELECT b.monthly_limit INTO most FROM public.tenants t
    JOIN public.tier_budgets b ON b.tier_id = t.tier_id AND b.kind = p_kind WHERE t.id = tenant;
  INSERT INTO public.charge_counters (id, tenant_id, kind, month, used, resets)
    VALUES (p_id, tenant, p_kind, p_month, 0, 0) ON CONFLICT (tenant_id, kind, month) DO NOTHING;
  UPDATE public.charge_counters AS c SET used = c.used + 1
    WHERE c.tenant_id = tenant AND c.kind = p_kind AND c.month = p_month AND (most IS NULL OR c.used < most)
    RETURNING c.resets INTO times;
  IF NOT FOUND THEN
    DELETE FROM public.charges AS c WHERE c.tenant_id = tenant AND c.id = p_id;
    RETURN false;
  END IF;
  IF times > 0 THEN
    UPDATE public.charges AS c SET resets = times WHERE c.tenant_id = tenant AND c.id = p_id;
  END IF;
  RETURN true;
END $$
"""

GIVE_BACK = """
CREATE FUNCTION app.give_back_charge(p_kind text, p_key uuid) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE tenant uuid := app.current_tenant(); taken record;
BEGIN
  DELETE FROM public.charges AS c WHERE c.tenant_id = tenant AND c.kind = p_kind AND c.key = p_key
    RETURNING c.month, c.resets INTO taken;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE public.charge_counters AS c SET used = c.used - 1
    WHERE c.tenant_id = tenant AND c.kind = p_kind AND c.month = taken.month AND c.resets = taken.resets;
  RETURN true;
END $$
"""

# None: no limit. Where money is short, wrap-ups are what a free account is first without.
LIMITS: dict[str, dict[str, int | None]] = {
    "free": {"chat_turn": 200, "wrap_up_generation": 10, "journal_generation": 30, "mood": 30},
    "pro": {"chat_turn": 3_000, "wrap_up_generation": 300, "journal_generation": 300, "mood": 300},
    "business": {"chat_turn": None, "wrap_up_generation": None, "journal_generation": None, "mood": None},
}


def fill(apps: Any, editor: Any) -> None:
    budget = apps.get_model("usage", "TierBudget")
    for tier, limits in LIMITS.items():
        for kind, limit in limits.items():
            budget.objects.create(tier_id=tier, kind=kind, monthly_limit=limit)


SCOPED = ("web_tenant", "worker_tenant")


class Migration(migrations.Migration):
    dependencies = [
        ("tenancy", "0005_colleagues"),
        ("usage", "0003_names"),
    ]

    operations = [
        migrations.CreateModel(
            name="BudgetReset",
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
                        choices=[
                            ("chat_turn", "Answers"),
                            ("wrap_up_generation", "Wrap-ups"),
                            ("journal_generation", "Journal entries"),
                            ("mood", "Moods of the day"),
                        ],
                        max_length=40,
                    ),
                ),
                ("month", models.DateField()),
                ("used", models.PositiveIntegerField(help_text="what had been used until then")),
                ("by", models.UUIDField()),
                ("at", models.DateTimeField(default=memberintel.lib.clock.now)),
            ],
            options={
                "db_table": "budget_resets",
                "base_manager_name": "objects",
                "indexes": [models.Index(fields=["tenant_id", "month"], name="budget_resets_of_month")],
            },
        ),
        migrations.CreateModel(
            name="Charge",
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
                        choices=[
                            ("chat_turn", "Answers"),
                            ("wrap_up_generation", "Wrap-ups"),
                            ("journal_generation", "Journal entries"),
                            ("mood", "Moods of the day"),
                        ],
                        max_length=40,
                    ),
                ),
                ("key", models.UUIDField()),
                ("month", models.DateField()),
                ("taken_at", models.DateTimeField()),
                ("resets", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "db_table": "charges",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant_id", "kind", "key"), name="charges_one_per_key")
                ],
            },
        ),
        migrations.CreateModel(
            name="ChargeCounter",
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
                        choices=[
                            ("chat_turn", "Answers"),
                            ("wrap_up_generation", "Wrap-ups"),
                            ("journal_generation", "Journal entries"),
                            ("mood", "Moods of the day"),
                        ],
                        max_length=40,
                    ),
                ),
                ("month", models.DateField(help_text="its first day")),
                ("used", models.PositiveIntegerField(default=0)),
                ("resets", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "db_table": "charge_counters",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "kind", "month"), name="charge_counters_one_per_month"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TierBudget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("chat_turn", "Answers"),
                            ("wrap_up_generation", "Wrap-ups"),
                            ("journal_generation", "Journal entries"),
                            ("mood", "Moods of the day"),
                        ],
                        editable=False,
                        max_length=40,
                    ),
                ),
                (
                    "monthly_limit",
                    models.PositiveIntegerField(blank=True, help_text="Empty: no limit.", null=True),
                ),
                (
                    "tier",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="budgets",
                        to="tenancy.tier",
                    ),
                ),
            ],
            options={
                "verbose_name": "monthly budget",
                "db_table": "tier_budgets",
                "constraints": [
                    models.UniqueConstraint(fields=("tier", "kind"), name="tier_budgets_one_per_kind")
                ],
            },
        ),
        Protect(
            "ChargeCounter",
            private=False,
            web="SELECT, INSERT, UPDATE (used, resets)",
            worker="SELECT, INSERT, UPDATE (used)",
        ),
        Protect(
            "Charge",
            private=False,
            web="SELECT, INSERT, UPDATE (resets), DELETE",
            worker="SELECT, INSERT, UPDATE (resets), DELETE",
        ),
        Protect("BudgetReset", private=False, web="SELECT, INSERT", worker="SELECT"),
        Function("take_charge(uuid, text, uuid, date, timestamptz)", TAKE, execute=SCOPED),
        Function("give_back_charge(text, uuid)", GIVE_BACK, execute=SCOPED),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
