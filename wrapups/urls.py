"""Addresses of wrap-ups and the journal."""

from __future__ import annotations

from django.urls import path

from wrapups import views
from wrapups.handover import views as handover
from wrapups.journal import views as journal
from wrapups.pooling import views as pooling

urlpatterns = [
    path("wrap-ups/", views.wrap_up_list, name="wrap-ups"),
    path("wrap-ups/open-items/", views.open_items, name="open-items"),
    path("wrap-ups/<uuid:wrap_up>/items/<uuid:item>/", views.tick, name="open-item"),
    path("wrap-ups/<uuid:wrap_up>/", views.wrap_up, name="wrap-up"),
    path("wrap-ups/<uuid:wrap_up>/edit/", views.edit, name="wrap-up-edit"),
    path("wrap-ups/<uuid:wrap_up>/delete/", views.delete, name="wrap-up-delete"),
    path("sessions/<uuid:session>/wrap-up/", views.of_session, name="session-wrap-up"),
    path("settings/external-memory/", handover.external_memory, name="external-memory"),
    path("privacy/pooling/", pooling.pooling, name="pooling"),
    path("journal/", journal.journal, name="journal"),
    path("journal/<str:day>/", journal.one_day, name="journal-day"),
    path("journal/sessions/<uuid:session>/edit/", journal.edit, name="journal-edit"),
]
