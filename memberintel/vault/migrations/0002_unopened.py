"""What was met that cannot be opened, for staff."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids


class Migration(migrations.Migration):
    dependencies = [
        ("vault", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Unopened",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("place", models.CharField(max_length=120)),
                ("row_id", models.UUIDField()),
                ("first_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("last_at", models.DateTimeField(default=memberintel.lib.clock.now)),
            ],
            options={
                "db_table": "unopened",
                "indexes": [models.Index(fields=["-last_at"], name="unopened_recent")],
                "constraints": [models.UniqueConstraint(fields=("place", "row_id"), name="unopened_once")],
            },
        ),
    ]
