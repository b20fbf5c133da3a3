from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TenancyConfig(AppConfig):
    name = "memberintel.tenancy"
    label = "tenancy"
    verbose_name = "customers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memberintel.tenancy.staff import fill_groups
        from memberintel.tenancy.tenantless import grant_tenantless

        post_migrate.connect(grant_tenantless, dispatch_uid="grant_tenantless")
        post_migrate.connect(fill_groups, dispatch_uid="fill_groups")
