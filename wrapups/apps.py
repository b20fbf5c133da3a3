from django.apps import AppConfig


class WrapupsConfig(AppConfig):
    name = "wrapups"
    label = "wrapups"
    default_auto_field = "django.db.models.BigAutoField"
