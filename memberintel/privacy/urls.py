"""Addresses of the privacy page, and of what owners say there."""

from __future__ import annotations

from django.urls import path

from memberintel.privacy import keeping_pages, views

urlpatterns = [
    path("privacy/", views.privacy, name="privacy"),
    path("privacy/retention/", keeping_pages.keep, name="retention"),
]
