from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "sessions"
    label = "chat"
    verbose_name = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from sessions import indexer  # noqa: F401  (hears of what is appended)
