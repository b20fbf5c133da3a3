from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "memberintel.vault"
    label = "vault"
    default_auto_field = "django.db.models.BigAutoField"
