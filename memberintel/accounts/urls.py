from __future__ import annotations

from django.urls import path

from memberintel.accounts import team, token_pages, usage, views

urlpatterns = [
    path("", views.start, name="start"),
    path("settings/", views.settings, name="settings"),
    path("settings/sign-out-everywhere/", views.sign_out_everywhere, name="sign-out-everywhere"),
    path("settings/tokens/", token_pages.token_list, name="tokens"),
    path("settings/tokens/<uuid:token>/revoke/", token_pages.revoke, name="token-revoke"),
    path("usage/", usage.month, name="usage"),
    path("mail/", views.mail, name="mail"),
    path("colleagues/", team.colleague_list, name="colleagues"),
    path("colleagues/<uuid:person>/remove/", team.remove, name="colleague-remove"),
    path("colleagues/<uuid:person>/let-back/", team.let_back, name="colleague-let-back"),
    path("colleagues/invitations/<uuid:invitation>/", team.invitation, name="invitation"),
    path("invitations/<str:token>/", team.join, name="join"),
]
