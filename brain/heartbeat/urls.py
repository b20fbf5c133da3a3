from __future__ import annotations

from django.urls import path

from brain.heartbeat import pages, settings_pages

SITE = "settings/sites/<uuid:site>/"
SOURCE = f"{SITE}sources/<uuid:source>/"

urlpatterns = [
    path("brain/heartbeat/", pages.heartbeat, name="heartbeat"),
    path("brain/heartbeat/sample.csv", pages.sample, name="heartbeat-sample"),
    path("brain/heartbeat/<uuid:site>/", pages.heartbeat, name="heartbeat-site"),
    path("brain/heartbeat/<uuid:site>/upload/", pages.upload, name="heartbeat-upload"),
    path("settings/sites/", settings_pages.sites, name="sites"),
    path(SITE, settings_pages.site, name="site"),
    path(f"{SITE}delete/", settings_pages.delete, name="site-delete"),
    path(f"{SITE}connect/<slug:kind>/", settings_pages.connect, name="source-connect"),
    path(f"{SOURCE}try/", settings_pages.try_source, name="source-try"),
    path(f"{SOURCE}disconnect/", settings_pages.disconnect, name="source-disconnect"),
]
