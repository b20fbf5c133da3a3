"""Addresses of sessions."""

from __future__ import annotations

from django.urls import path

from sessions import knowledge, views

urlpatterns = [
    path("chat/", views.chat, name="chat"),
    path("chat/act/", views.chat_act, name="chat-act"),
    path("chat/off-the-record/", views.off_record, name="off-record"),
    path("sessions/", views.session_list, name="sessions"),
    path("sessions/search/", views.find, name="search"),
    path("sessions/<uuid:session>/", views.transcript, name="session"),
    path("sessions/<uuid:session>/earlier/", views.earlier, name="session-earlier"),
    path("sessions/<uuid:session>/continue/", views.go_on, name="session-continue"),
    path("sessions/<uuid:session>/archive/", views.archive, name="session-archive"),
    path("sessions/<uuid:session>/delete/", views.delete, name="session-delete"),
    path("sessions/<uuid:session>/turns/<uuid:turn>/", views.turn, name="turn"),
    path("sessions/<uuid:session>/remembered/", views.remembered, name="remembered"),
    path("sessions/<uuid:session>/knowledge/", knowledge.page, name="session-knowledge"),
]
