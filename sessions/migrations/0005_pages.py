"""What pages of a long log need, and the reports that something was forgotten."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
from memberintel.tenancy.operations import Protect, TenantForeignKey


class Migration(migrations.Migration):
    dependencies = [("chat", "0004_erasure")]

    operations = [
        migrations.AddIndex(
            "sessionevent",
            models.Index(
                condition=models.Q(("kind", "user_message")),
                fields=["tenant_id", "session_id", "turn"],
                name="session_events_turns",
            ),
        ),
        migrations.CreateModel(
            name="ForgotReport",
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
                ("session_id", models.UUIDField(editable=False)),
                ("turn", models.UUIDField(editable=False, null=True)),
                ("at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
            ],
            options={
                "db_table": "forgot_reports",
                "base_manager_name": "objects",
                "indexes": [models.Index(models.F("at"), name="forgot_reports_at")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "session_id", "turn"),
                        name="forgot_reports_once_a_turn",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        Protect("ForgotReport", web="SELECT, INSERT", worker="SELECT", definers={"eraser": "SELECT, DELETE"}),
        TenantForeignKey("ForgotReport", "session_id", "sessions"),
    ]
