from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "sessions"
    label = "chat"
    verbose_name = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from sessions import indexer, receivers  # noqa: F401  (they hear of what is appended, and removed)
