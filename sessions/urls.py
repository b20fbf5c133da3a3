"""Addresses of sessions."""

from __future__ import annotations

from django.urls import path

from sessions import api, views

urlpatterns = [
    path("chat/", views.chat, name="chat"),
    path("chat/act/", views.chat_act, name="chat-act"),
    path("sessions/", views.session_list, name="sessions"),
    path("sessions/<uuid:session>/", views.transcript, name="session"),
    path("sessions/<uuid:session>/turns/<uuid:turn>/", views.turn, name="turn"),
    path("sessions/<uuid:session>/remembered/", views.remembered, name="remembered"),
    path("api/v1/messages/", api.messages, name="api-messages"),
    path("api/v1/sessions/", api.open_session, name="api-sessions"),
    path("api/v1/sessions/<uuid:session>/end/", api.end, name="api-end"),
    path("api/v1/sessions/<uuid:session>/leaving/", api.leaving, name="api-leaving"),
    path("api/v1/sessions/<uuid:session>/turns/<uuid:turn_id>/stream/", api.stream, name="api-stream"),
    path("api/v1/sessions/<uuid:session>/turns/<uuid:turn_id>/stop/", api.stop, name="api-stop"),
    path("api/v1/sessions/<uuid:session>/turns/<uuid:turn_id>/retry/", api.retry, name="api-retry"),
    path("api/v1/presence/", api.presence, name="api-presence"),
]
