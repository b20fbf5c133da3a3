"""Addresses of the privacy page."""

from __future__ import annotations

from django.urls import path

from memberintel.privacy import views

urlpatterns = [path("privacy/", views.privacy, name="privacy")]
