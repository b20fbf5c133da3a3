from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ProjectConfig(AppConfig):
    """The project itself: makes our Celery app the one that tasks are published to."""

    name = "memberintel"
    label = "memberintel"

    def ready(self) -> None:
        from memberintel import celery

        celery.app.set_default()


class DeskConfig(AdminConfig):
    """Django's admin, with our support desk as its site."""

    default_site = "memberintel.admin.Desk"
