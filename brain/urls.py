from __future__ import annotations

from django.urls import include, path

from brain import history, views

urlpatterns = [
    path("brain/", views.brain, name="brain"),
    path("brain/memory/", include("brain.memory.urls")),
    path("brain/knowledge/", include("brain.shared.urls")),
    path("brain/<slug:kind>/", views.document, name="document"),
    path("brain/<slug:kind>/versions/", history.versions, name="document-versions"),
    path("brain/<slug:kind>/versions/<int:version>/", history.version, name="document-version"),
    path("brain/<slug:kind>/versions/<int:version>/restore/", history.restore, name="document-restore"),
    path("brain/<slug:kind>/versions/<int:version>/remove/", history.redact, name="document-redact"),
    path("brain/<slug:kind>/compare/", history.compare, name="document-compare"),
]
