"""The API's addresses, its description and the page to read it on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path
from drf_spectacular.generators import SchemaGenerator

import brain.api
import brain.heartbeat.api
import brain.memory.api
import brain.shared.api
import memberintel.privacy.api
import sessions.api
import sessions.knowledge_api
import wrapups.api
from memberintel.accounts import api as accounts
from memberintel.accounts import team_api, usage_api
from memberintel.accounts.problems import Problem
from memberintel.privacy import data_api
from wrapups.handover import api as handover
from wrapups.journal import api as journal
from wrapups.pooling import api as pooling


def open_to_all(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A view of the API that tells nothing of anybody: no sign-in, no scope, no limit; to read only."""

    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return Problem(405, "method-not-allowed", "Use GET here.", headers={"Allow": "GET"}).response()
        return view(request)

    answer.open_to_all = True  # type: ignore[attr-defined]
    return answer


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, made once: it is the same for everybody."""
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return made


@open_to_all
def openapi(request: HttpRequest) -> HttpResponse:
    """The description, for programs."""
    return JsonResponse(document())


@open_to_all
def docs(request: HttpRequest) -> HttpResponse:
    """The description, for people, with forms to try it."""
    return render(request, "api/docs.html")


SESSION = "v1/sessions/<uuid:session>/"
VERSION = "v1/documents/<slug:kind>/versions/<int:version>/"
SITE = "v1/sites/<uuid:site>/"
TURN = f"{SESSION}turns/<uuid:turn_id>/"

urlpatterns = [
    path("docs/", docs, name="api-docs"),
    path("openapi.json", openapi, name="api-description"),
    path("v1/privacy/audit/", memberintel.privacy.api.Audit.as_view(), name="api-audit"),
    path("v1/privacy/retention/", memberintel.privacy.api.Retention.as_view(), name="api-retention"),
    path("v1/messages/", sessions.api.Messages.as_view(), name="api-messages"),
    path("v1/sessions/", sessions.api.Sessions.as_view(), name="api-sessions"),
    path(SESSION, sessions.api.Session.as_view(), name="api-session"),
    path(f"{SESSION}knowledge/", sessions.knowledge_api.Knowledge.as_view(), name="api-knowledge"),
    path(f"{SESSION}end/", sessions.api.End.as_view(), name="api-end"),
    path(f"{SESSION}archive/", sessions.api.Archive.as_view(), name="api-archive"),
    path(f"{SESSION}unarchive/", sessions.api.Unarchive.as_view(), name="api-unarchive"),
    path(f"{SESSION}forgot/", sessions.api.Forgot.as_view(), name="api-forgot"),
    path(f"{SESSION}leaving/", sessions.api.Leaving.as_view(), name="api-leaving"),
    path(f"{SESSION}wrap-up/", wrapups.api.OfSession.as_view(), name="api-session-wrap-up"),
    path(f"{TURN}stream/", sessions.api.Stream.as_view(), name="api-stream"),
    path(f"{TURN}stop/", sessions.api.Stop.as_view(), name="api-stop"),
    path(f"{TURN}retry/", sessions.api.Retry.as_view(), name="api-retry"),
    path("v1/search/", sessions.api.Search.as_view(), name="api-search"),
    path("v1/presence/", sessions.api.Presence.as_view(), name="api-presence"),
    path("v1/documents/", brain.api.Documents.as_view(), name="api-documents"),
    path("v1/documents/<slug:kind>/", brain.api.Document.as_view(), name="api-document"),
    path("v1/documents/<slug:kind>/versions/", brain.api.Versions.as_view(), name="api-versions"),
    path(VERSION, brain.api.Version.as_view(), name="api-version"),
    path(f"{VERSION}restore/", brain.api.Restore.as_view(), name="api-restore"),
    path("v1/documents/<slug:kind>/compare/", brain.api.Diff.as_view(), name="api-compare"),
    path("v1/sites/", brain.heartbeat.api.Sites.as_view(), name="api-sites"),
    path(SITE, brain.heartbeat.api.Site.as_view(), name="api-site"),
    path(f"{SITE}heartbeat/", brain.heartbeat.api.Heartbeat.as_view(), name="api-heartbeat"),
    path(f"{SITE}numbers/", brain.heartbeat.api.Numbers.as_view(), name="api-numbers"),
    path(f"{SITE}sources/", brain.heartbeat.api.Sources.as_view(), name="api-sources"),
    path(f"{SITE}sources/<uuid:source>/", brain.heartbeat.api.Source.as_view(), name="api-source"),
    path("v1/memory/", brain.memory.api.Memories.as_view(), name="api-memories"),
    path("v1/memory/<uuid:memory>/", brain.memory.api.OneMemory.as_view(), name="api-memory"),
    path(
        "v1/memory/<uuid:memory>/versions/",
        brain.memory.api.MemoryVersions.as_view(),
        name="api-memory-versions",
    ),
    path("v1/knowledge/", brain.shared.api.Articles.as_view(), name="api-articles"),
    path("v1/knowledge/<uuid:article>/", brain.shared.api.OneArticle.as_view(), name="api-article"),
    path("v1/wrap-ups/", wrapups.api.WrapUps.as_view(), name="api-wrap-ups"),
    path("v1/wrap-ups/states/", wrapups.api.States.as_view(), name="api-wrap-up-states"),
    path("v1/open-items/", wrapups.api.OpenItems.as_view(), name="api-open-items"),
    path("v1/wrap-ups/<uuid:wrap_up>/items/<uuid:item>/", wrapups.api.Item.as_view(), name="api-open-item"),
    path("v1/wrap-ups/<uuid:wrap_up>/", wrapups.api.WrapUp.as_view(), name="api-wrap-up"),
    path("v1/journal/", journal.Journal.as_view(), name="api-journal"),
    path("v1/journal/<str:day>/", journal.OneDay.as_view(), name="api-journal-day"),
    path("v1/journal/<str:day>/sessions/", journal.OfDay.as_view(), name="api-journal-sessions"),
    path(f"{SESSION}journal/", journal.OfSession.as_view(), name="api-session-journal"),
    path("v1/external-memory/", handover.ExternalMemory.as_view(), name="api-external-memory"),
    path("v1/privacy/pooling/", pooling.Pooling.as_view(), name="api-pooling"),
    path("v1/profile/", accounts.Profile.as_view(), name="api-profile"),
    path("v1/colleagues/", team_api.Colleagues.as_view(), name="api-colleagues"),
    path("v1/colleagues/<uuid:person>/", team_api.Colleague.as_view(), name="api-colleague"),
    path("v1/invitations/", team_api.Invitations.as_view(), name="api-invitations"),
    path("v1/invitations/<uuid:invitation>/", team_api.Invitation.as_view(), name="api-invitation"),
    path("v1/privacy/export/", data_api.Export.as_view(), name="api-export"),
    path("v1/privacy/erasure/", data_api.Erase.as_view(), name="api-erasure"),
    path("v1/usage/", usage_api.Usage.as_view(), name="api-usage"),
    path("v1/tokens/", accounts.Tokens.as_view(), name="api-tokens"),
    path("v1/tokens/<uuid:token>/", accounts.Token.as_view(), name="api-token"),
]
