"""How long content is kept: by default of a tier, and of an account."""

from django.db import migrations, models

DAYS = {
    "keep_events": "conversations, in days",
    "keep_wrap_ups": "wrap-ups, in days",
    "keep_journal": "journal, in days",
    "keep_memory": "MEMORY, in days",
}


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0006_memory_cap")]

    operations = [
        migrations.AddField(
            model, name, models.PositiveSmallIntegerField(blank=True, null=True, verbose_name=words)
        )
        for model in ("Tier", "Tenant")
        for name, words in DAYS.items()
    ]
