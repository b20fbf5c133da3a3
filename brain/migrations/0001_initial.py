from django.db import migrations, models

import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import Protect


class Migration(migrations.Migration):
    initial = True

    dependencies = [("tenancy", "0002_scope"), ("vault", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Document",
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
                ("kind", models.CharField(choices=[("soul", "SOUL"), ("bible", "BIBLE")], max_length=16)),
                ("version", models.PositiveIntegerField()),
                ("text", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("updated_at", models.DateTimeField()),
                (
                    "updated_by",
                    models.CharField(
                        choices=[("customer", "customer"), ("advisor", "advisor"), ("staff", "staff")],
                        max_length=16,
                    ),
                ),
            ],
            options={
                "db_table": "documents",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "customer_id", "kind"), name="documents_one_per_kind"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DocumentVersion",
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
                ("kind", models.CharField(choices=[("soul", "SOUL"), ("bible", "BIBLE")], max_length=16)),
                ("version", models.PositiveIntegerField()),
                ("text", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                ("reason", memberintel.vault.fields.SealedText(owner="customer", row="pk")),
                (
                    "author",
                    models.CharField(
                        choices=[("customer", "customer"), ("advisor", "advisor"), ("staff", "staff")],
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "document_versions",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "customer_id", "kind", "version"), name="document_versions_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PromptPart",
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
                ("digest", models.CharField(max_length=64)),
                ("source_kind", models.CharField(max_length=24)),
                ("source_id", models.UUIDField(null=True)),
                ("text", memberintel.vault.fields.SealedText(null=True, owner="customer", row="pk")),
                ("created_at", models.DateTimeField()),
                ("removed_on", models.DateField(null=True)),
            ],
            options={
                "db_table": "prompt_parts",
                "indexes": [
                    models.Index(
                        fields=["tenant_id", "customer_id", "source_kind", "source_id"],
                        name="prompt_parts_by_source",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "customer_id", "digest"), name="prompt_parts_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("removed_on__isnull", True), ("text__isnull", False)),
                            models.Q(("removed_on__isnull", False), ("text__isnull", True)),
                            _connector="OR",
                        ),
                        name="prompt_parts_text_or_removed",
                    ),
                ],
            },
        ),
        Protect("Document", web="SELECT, INSERT, UPDATE", worker="SELECT"),
        Protect("DocumentVersion", web="SELECT, INSERT", worker="SELECT", append_only=True),
        Protect("PromptPart", web="SELECT, INSERT, UPDATE (text, removed_on)", worker="SELECT"),
    ]
