from __future__ import annotations

from django.urls import path

from brain import views

urlpatterns = [
    path("brain/", views.brain, name="brain"),
    path("brain/<slug:kind>/", views.document, name="document"),
]
