"""Runs go to `memberintel.usage`; their table stays as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("wrapups", "0003_names"), ("usage", "0005_runs")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(model_name="run", name="runs_recent"),
                migrations.DeleteModel(name="Run"),
            ]
        ),
    ]
