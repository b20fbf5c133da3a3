from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "memberintel.usage"
    label = "usage"
    verbose_name = "cost"
    default_auto_field = "django.db.models.BigAutoField"
