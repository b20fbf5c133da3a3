from importlib import import_module

from django.apps import AppConfig


class WrapupsConfig(AppConfig):
    name = "wrapups"
    label = "wrapups"
    verbose_name = "wrap-ups"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to sessions."""
        import_module("wrapups.receivers")
