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
            name="Profile",
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
                ("display_name", memberintel.vault.fields.SealedText(default="", owner="customer", row="pk")),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("language", models.CharField(default="en", max_length=8)),
            ],
            options={
                "db_table": "profiles",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "customer_id"), name="profiles_one_per_customer"
                    )
                ],
            },
        ),
        Protect("Profile", web="SELECT, INSERT, UPDATE", worker="SELECT"),
    ]
