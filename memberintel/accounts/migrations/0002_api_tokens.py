from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import Function, Protect

# A token must be found before anybody's scope is known. A tenant-less table would do that too, and would let
# every query that forgets a filter list or revoke the tokens of all customers. So the table is private like
# any other, and this function tells one thing: whose token has this digest. Who can ask it has the token.
WHOSE = """
CREATE FUNCTION app.whose_token(given bytea)
RETURNS TABLE (token uuid, tenant uuid, customer uuid, scopes text, expires_at timestamptz, used_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.tenant_id, t.customer_id, t.scopes, t.expires_at, t.last_used_at
  FROM public.api_tokens t WHERE t.digest = given AND t.revoked_at IS NULL
$$
"""
SEEN = "id, tenant_id, customer_id, digest, scopes, expires_at, revoked_at, last_used_at"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ApiToken",
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
                ("name", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("prefix", models.CharField(max_length=12)),
                ("digest", models.BinaryField(max_length=32)),
                ("scopes", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "api_tokens",
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(fields=["digest"], name="api_tokens_digest"),
                    models.Index(fields=["tenant_id", "customer_id"], name="api_tokens_customer"),
                ],
            },
        ),
        # Nothing about a token can be changed but that it was used and that it was revoked.
        Protect(
            "ApiToken",
            web="SELECT, INSERT, UPDATE (last_used_at, revoked_at)",
            worker="",
            definers={"sweeper": f"SELECT ({SEEN})"},
        ),
        Function("whose_token(bytea)", WHOSE, owner="sweeper", execute=("app_common",)),
    ]
