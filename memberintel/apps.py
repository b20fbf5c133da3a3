from __future__ import annotations

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """The project itself: makes our Celery app the one that tasks are published to."""

    name = "memberintel"
    label = "memberintel"

    def ready(self) -> None:
        from memberintel import celery

        celery.app.set_default()
