"""Every address of the product."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("", include("memberintel.accounts.urls")),
    path("", include("sessions.urls")),
    path("", include("brain.urls")),
    path("", include("wrapups.urls")),
]
