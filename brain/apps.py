from django.apps import AppConfig


class BrainConfig(AppConfig):
    name = "brain"
    label = "brain"
    verbose_name = "brain"
    default_auto_field = "django.db.models.BigAutoField"
