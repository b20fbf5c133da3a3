"""When the keys of an erasure were gone: others may have held one, and written, for a while after that."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("privacy", "0003_erasure")]

    operations = [migrations.AddField("erasure", "keys_gone_at", models.DateTimeField(null=True))]
