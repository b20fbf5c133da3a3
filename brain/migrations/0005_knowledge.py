from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids


class Migration(migrations.Migration):
    dependencies = [
        ("brain", "0004_memory"),
    ]

    operations = [
        migrations.CreateModel(
            name="KnowledgeDraft",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("slug", models.SlugField(max_length=80, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("topic", models.CharField(max_length=60)),
                ("text", models.TextField(max_length=4000)),
                ("updated_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("published_at", models.DateTimeField(editable=False, null=True)),
                ("imported", models.CharField(blank=True, default="", editable=False, max_length=64)),
            ],
            options={
                "verbose_name": "article",
                "db_table": "knowledge_drafts",
            },
        ),
        migrations.CreateModel(
            name="Knowledge",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("slug", models.SlugField(max_length=80, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("topic", models.CharField(max_length=60)),
                ("text", models.TextField(max_length=4000)),
                ("published_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField(default=memberintel.lib.clock.now)),
                ("vector", models.BinaryField(null=True)),
                ("embedder", models.CharField(blank=True, default="", editable=False, max_length=120)),
            ],
            options={
                "verbose_name": "published article",
                "db_table": "knowledge",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("embedder", ""), ("vector__isnull", True)),
                            models.Q(("vector__isnull", False), models.Q(("embedder", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="knowledge_vector_and_embedder",
                    )
                ],
            },
        ),
    ]
