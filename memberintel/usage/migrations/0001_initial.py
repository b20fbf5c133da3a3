"""The ledger: readable to the customer it belongs to, added to, never changed by the runtime logins."""

from django.db import migrations, models

import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.usage.models
from memberintel.tenancy.operations import CUSTOMER_OR_NONE, TENANT, Protect

# A row without a customer belongs to the tenant's own calls, and is seen in a scope without a customer.
IN_SCOPE = f"{TENANT} AND customer_id IS NOT DISTINCT FROM {CUSTOMER_OR_NONE}"


class Migration(migrations.Migration):
    initial = True

    dependencies = [("tenancy", "0002_scope")]

    operations = [
        migrations.CreateModel(
            name="LedgerEntry",
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
                    "customer_id",
                    models.UUIDField(
                        default=memberintel.usage.models.customer_if_any, editable=False, null=True
                    ),
                ),
                ("session", models.UUIDField(null=True)),
                ("turn", models.UUIDField(null=True)),
                ("purpose", models.CharField(max_length=20)),
                ("provider", models.CharField(max_length=20)),
                ("model", models.CharField(max_length=100)),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(help_text="which call of the same question, from 1"),
                ),
                ("input_tokens", models.PositiveIntegerField()),
                ("output_tokens", models.PositiveIntegerField()),
                ("cached_tokens", models.PositiveIntegerField()),
                ("cache_write_tokens", models.PositiveIntegerField()),
                (
                    "estimated",
                    models.BooleanField(help_text="cut off before the provider had told the counts"),
                ),
                (
                    "cost_micros",
                    models.PositiveBigIntegerField(
                        help_text="micro-dollars; empty: the price is not known", null=True
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("complete", "Complete"),
                            ("invalid", "Invalid"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        max_length=10,
                    ),
                ),
                ("error_code", models.CharField(blank=True, max_length=20)),
                ("error_reason", models.CharField(blank=True, max_length=60)),
                ("request_digest", models.CharField(max_length=64)),
                ("request_bytes", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("duration_ms", models.PositiveIntegerField()),
            ],
            options={
                "db_table": "ledger",
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(fields=["tenant_id", "started_at"], name="ledger_tenant_started"),
                    models.Index(fields=["tenant_id", "session"], name="ledger_tenant_session"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("error_code", ""), ("outcome__in", ["complete", "cancelled"])),
                            models.Q(
                                ("outcome__in", ["failed", "invalid"]),
                                models.Q(("error_code", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="ledger_error_with_failure",
                    )
                ],
            },
        ),
        Protect("LedgerEntry", web="SELECT, INSERT", worker="SELECT, INSERT", policy=IN_SCOPE),
    ]
