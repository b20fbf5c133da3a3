"""Addresses of MEMORY."""

from __future__ import annotations

from django.urls import path

from brain.memory import views

urlpatterns = [
    path("", views.memories, name="memories"),
    path("<uuid:entry>/", views.memory, name="memory"),
    path("<uuid:entry>/delete/", views.delete, name="memory-delete"),
]
