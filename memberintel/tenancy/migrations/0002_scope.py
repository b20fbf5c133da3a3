"""The functions every policy stands on, the tiers, and the reserved system tenant."""

from typing import Any

from django.db import migrations

from memberintel.tenancy.context import SYSTEM_TENANT_ID
from memberintel.tenancy.operations import Function

# Read by row-level security policies. They raise rather than return NULL: a missing scope is never "no rows".
CURRENT = """
CREATE FUNCTION app.current_{what}() RETURNS uuid LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE found text := current_setting('app.{what}_id', true);
BEGIN
  IF found IS NULL OR found = '' THEN
    RAISE EXCEPTION 'no {what} in scope' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN found::uuid;
END $$
"""

REFUSE = """
CREATE FUNCTION app.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_user = 'eraser' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
"""

EVERYBODY = ("app_common", "support", "backup", "owner", "searcher", "sweeper", "eraser")

TIERS = (("free", "Free", False), ("pro", "Pro", True), ("business", "Business", True))


def fill(apps: Any, editor: Any) -> None:
    tier, tenant = apps.get_model("tenancy", "Tier"), apps.get_model("tenancy", "Tenant")
    for key, name, pages in TIERS:
        tier.objects.create(key=key, name=name, wrap_up_pages=pages)
    tenant.objects.create(id=SYSTEM_TENANT_ID, name="MemberIntel", tier_id="business")


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0001_initial")]

    operations = [
        Function("current_tenant()", CURRENT.format(what="tenant"), execute=EVERYBODY),
        Function("current_customer()", CURRENT.format(what="customer"), execute=EVERYBODY),
        Function("refuse_change()", REFUSE),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
