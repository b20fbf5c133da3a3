"""Addresses of shared knowledge."""

from __future__ import annotations

from django.urls import path

from brain.shared import views

urlpatterns = [
    path("", views.knowledge, name="knowledge"),
    path("<slug:slug>/", views.article, name="article"),
]
