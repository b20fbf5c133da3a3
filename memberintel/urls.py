"""Every address of the product."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from memberintel import health, metrics

urlpatterns = [
    path("metrics", metrics.metrics),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("api/", include("memberintel.api")),
    path("", include("memberintel.accounts.urls")),
    path("", include("memberintel.privacy.urls")),
    path("", include("memberintel.privacy.data_urls")),
    path("", include("sessions.urls")),
    path("", include("brain.heartbeat.urls")),
    path("", include("brain.urls")),
    path("", include("wrapups.urls")),
]

handler400 = "memberintel.errors.bad_request"
handler403 = "memberintel.errors.forbidden"
handler404 = "memberintel.errors.not_found"
handler500 = "memberintel.errors.server_error"
