from __future__ import annotations

from django.urls import path

from memberintel.accounts import views

urlpatterns = [
    path("", views.start, name="start"),
    path("settings/", views.settings, name="settings"),
]
