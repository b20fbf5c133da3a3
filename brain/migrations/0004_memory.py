from django.db import migrations, models

import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import Function, Protect, TenantForeignKey

# Ids only: each entry is then read in its own customer's scope.
TO_EMBED = """
CREATE FUNCTION app.memories_to_embed(p_embedder text, p_past uuid, p_limit integer)
RETURNS TABLE (id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT m.id, m.tenant_id, m.customer_id FROM public.memory_entries m
  WHERE m.id > p_past AND CASE WHEN p_embedder = '' THEN m.embedder = '' ELSE m.embedder <> p_embedder END
  ORDER BY m.id LIMIT p_limit
$$
"""
COUNT = """
CREATE FUNCTION app.memories_to_embed_count(p_embedder text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT count(*) FROM public.memory_entries m
  WHERE CASE WHEN p_embedder = '' THEN m.embedder = '' ELSE m.embedder <> p_embedder END
$$
"""
SWEEPER = {"sweeper": "SELECT (id, tenant_id, customer_id, embedder)"}


class Migration(migrations.Migration):
    dependencies = [
        ("brain", "0003_heartbeat"),
    ]

    operations = [
        migrations.CreateModel(
            name="MemoryEntry",
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
                ("version", models.PositiveIntegerField(default=1)),
                ("text", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("reason", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("changes", memberintel.vault.fields.SealedJSON(owner="customer", row="pk")),
                (
                    "source",
                    models.CharField(
                        choices=[("customer", "customer"), ("advisor", "advisor"), ("staff", "staff")],
                        max_length=16,
                    ),
                ),
                ("session_id", models.UUIDField(null=True)),
                ("message_seq", models.PositiveBigIntegerField(null=True)),
                ("vector", memberintel.vault.fields.SealedVector(null=True, owner="customer", row="pk")),
                ("embedder", models.CharField(blank=True, default="", max_length=120)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "memory",
                "verbose_name_plural": "memories",
                "db_table": "memory_entries",
                "indexes": [
                    models.Index(fields=["tenant_id", "customer_id", "id"], name="memory_entries_of"),
                    models.Index(
                        condition=models.Q(("session_id__isnull", False)),
                        fields=["tenant_id", "customer_id", "session_id"],
                        name="memory_entries_from",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("message_seq__isnull", True), ("session_id__isnull", True)),
                            models.Q(("message_seq__isnull", False), ("session_id__isnull", False)),
                            _connector="OR",
                        ),
                        name="memory_entries_message_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("embedder", ""), ("vector__isnull", True)),
                            models.Q(("vector__isnull", False), models.Q(("embedder", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="memory_entries_vector_and_embedder",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryVersion",
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
                ("entry_id", models.UUIDField()),
                ("version", models.PositiveIntegerField()),
                ("text", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("reason", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                (
                    "source",
                    models.CharField(
                        choices=[("customer", "customer"), ("advisor", "advisor"), ("staff", "staff")],
                        max_length=16,
                    ),
                ),
                ("session_id", models.UUIDField(null=True)),
                ("message_seq", models.PositiveBigIntegerField(null=True)),
                ("at", models.DateTimeField()),
                ("replaced_at", models.DateTimeField()),
            ],
            options={
                "db_table": "memory_versions",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "customer_id", "entry_id", "version"),
                        name="memory_versions_once",
                    )
                ],
            },
        ),
        Protect(
            "MemoryEntry",
            web="SELECT, INSERT, UPDATE, DELETE",
            worker="SELECT, UPDATE (vector, embedder)",
            definers=SWEEPER,
            referenced=True,
        ),
        Protect("MemoryVersion", web="SELECT, INSERT, DELETE", worker="SELECT"),
        TenantForeignKey("MemoryVersion", "entry_id", "memory_entries"),
        Function(
            "memories_to_embed(text, uuid, integer)", TO_EMBED, owner="sweeper", execute=("app_common",)
        ),
        Function("memories_to_embed_count(text)", COUNT, owner="sweeper", execute=("app_common",)),
    ]
