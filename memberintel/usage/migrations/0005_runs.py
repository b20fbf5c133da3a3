"""Runs come here from the wrap-ups, table and all, and are held by a lease."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids

# What staff were allowed stays with the model.
MOVE = """
UPDATE django_content_type SET app_label = 'usage' WHERE app_label = 'wrapups' AND model = 'run'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("usage", "0004_charges"),
        ("wrapups", "0003_names"),  # which made the table
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Run",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=memberintel.lib.ids.uuid7,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("kind", models.CharField(max_length=40)),
                        (
                            "started_at",
                            models.DateTimeField(default=memberintel.lib.clock.now, editable=False),
                        ),
                        ("finished_at", models.DateTimeField(null=True)),
                        ("counts", models.JSONField(default=dict)),
                        ("error", models.CharField(blank=True, default="", max_length=200)),
                    ],
                    options={
                        "db_table": "runs",
                        "indexes": [models.Index(fields=["kind", "-started_at"], name="runs_recent")],
                    },
                )
            ],
            database_operations=[migrations.RunSQL(MOVE)],
        ),
        migrations.AddField("run", "alone", models.BooleanField(default=False)),
        migrations.AddField("run", "lease_until", models.DateTimeField(null=True)),
        migrations.AddConstraint(
            "run",
            models.UniqueConstraint(
                condition=models.Q(("alone", True), ("finished_at__isnull", True)),
                fields=("kind",),
                name="runs_one_at_a_time",
            ),
        ),
    ]
