from typing import Any

from django.db import migrations, models

CAPS = {"free": 5, "pro": 15, "business": 100}


def give_caps(apps: Any, schema_editor: Any) -> None:
    for key, cap in CAPS.items():
        apps.get_model("tenancy", "Tier").objects.filter(key=key).update(memory_cap=cap)


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0005_colleagues")]

    operations = [
        migrations.AddField(
            model_name="tier",
            name="memory_cap",
            field=models.PositiveSmallIntegerField(
                default=5, help_text="entries of MEMORY a customer may keep"
            ),
        ),
        migrations.RunPython(give_caps, migrations.RunPython.noop),
    ]
