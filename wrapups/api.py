"""The API of wrap-ups, for plans that have them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts import gate
from memberintel.accounts.fields import Page, Strict, Text
from memberintel.accounts.problems import Invalid, NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, listed, parameters
from memberintel.tenancy.models import Tier
from sessions import queries as sessions
from wrapups import actions, queries
from wrapups.actions import Edit, EditedItem
from wrapups.models import JobState
from wrapups.queries import WrapUp as Found

READ = ("read", "wrapups")
CHANGE = ("wrapups",)
NOT_IN_PLAN = {
    403: "The account's plan has no wrap-ups (`plans` says which have), or the token lacks the scope."
}


class ItemOut(serializers.Serializer[Any]):
    """A decision, an open item or a fact."""

    id = serializers.CharField()
    text = serializers.CharField()
    messages = serializers.ListField(
        child=serializers.IntegerField(), help_text="Numbers of the session's messages it rests on."
    )

    class Meta:
        ref_name = "WrapUpItem"


class WrapUpOut(serializers.Serializer[Any]):
    """The notes on a finished session."""

    id = serializers.UUIDField()
    session = serializers.UUIDField(source="session_id")
    session_started_at = serializers.DateTimeField()
    session_last_activity_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    edited_at = serializers.DateTimeField(allow_null=True)
    readable = serializers.BooleanField(help_text="False when it cannot be opened; then the texts are empty.")
    summary = serializers.CharField()
    decisions = ItemOut(many=True)
    open_items = ItemOut(many=True)
    new_context = ItemOut(many=True)
    next_session_note = serializers.CharField()
    word_count = serializers.IntegerField()
    shortened = serializers.BooleanField(help_text="Whole items were left out to keep within the cap.")
    model = serializers.CharField()

    class Meta:
        ref_name = "WrapUp"


class WrapUpsOut(serializers.Serializer[Any]):
    """Wrap-ups, newest session first; `next` is the address of the next page, or null."""

    items = WrapUpOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "WrapUps"


class SessionWrapUpOut(serializers.Serializer[Any]):
    """What became of a session's wrap-up. `open`: the session has not ended."""

    state = serializers.ChoiceField(choices=["open", *JobState.values])
    wrap_up = WrapUpOut(allow_null=True)

    class Meta:
        ref_name = "SessionWrapUp"


class ItemIn(Strict):
    """An item; with the id of the one it was before, or without for an added one."""

    id = Text(required=False, allow_null=True, default=None, max_length=64)
    text = Text(allow_blank=True, help_text="Without a text the item goes.")


class WrapUpIn(Strict):
    """All texts of a wrap-up; an item that is not among them goes."""

    summary = Text(allow_blank=True)
    decisions = serializers.ListField(child=ItemIn(), max_length=200)
    open_items = serializers.ListField(child=ItemIn(), max_length=200)
    new_context = serializers.ListField(child=ItemIn(), max_length=200)
    next_session_note = Text(allow_blank=True)


class _InPlan(Endpoint):
    """For accounts whose plan has wrap-ups."""

    def admit(self, request: Any) -> gate.Caller:
        """The caller, if their plan has them."""
        caller = super().admit(request)
        if not caller.tier.wrap_up_pages:
            plans = list(
                Tier.objects.filter(wrap_up_pages=True).order_by("key").values_list("name", flat=True)
            )
            raise Problem(
                403,
                "not-in-plan",
                f"Wrap-ups can be read and changed on {' and '.join(plans)}; this account is on {caller.tier.name}.",
                plan=caller.tier.name,
                plans=plans,
            )
        return caller


class WrapUps(_InPlan):
    """All wrap-ups."""

    scopes = {"GET": READ}

    @described("list_wrap_ups", tag="wrap-ups", query=Page, gives={200: WrapUpsOut}, errors=NOT_IN_PLAN)
    def get(self, request: Request) -> Response:
        """Wrap-ups by their session's last activity, newest first."""
        page = parameters(request, Page)
        limit = page.pop("limit")
        found = queries.list_wrap_ups(limit=limit + 1, **page)
        return listed(request, list(WrapUpOut(found, many=True).data), _cursor, limit)


class WrapUp(_InPlan):
    """One wrap-up."""

    scopes = {"GET": READ, "PUT": CHANGE, "DELETE": CHANGE}

    @described("get_wrap_up", tag="wrap-ups", by_id=True, gives={200: WrapUpOut}, errors=NOT_IN_PLAN)
    def get(self, request: Request, wrap_up: UUID) -> Response:
        """One wrap-up."""
        return Response(_told(wrap_up))

    @described(
        "edit_wrap_up",
        tag="wrap-ups",
        by_id=True,
        takes=WrapUpIn,
        gives={200: WrapUpOut},
        errors=NOT_IN_PLAN | {413: "More words than a wrap-up may have; `words` and `limit` say how many."},
    )
    def put(self, request: Request, wrap_up: UUID) -> Response:
        """Write what a wrap-up says. The advisor goes by it from the next conversation on."""
        given = body(request, WrapUpIn)
        try:
            actions.edit(wrap_up, _edit(given), by=self.caller.user.pk)
        except actions.NotFound:
            raise NotFound from None
        except actions.Empty:
            text = "A wrap-up needs a summary. To get rid of the whole of it, delete it."
            raise Invalid([("summary", text)]) from None
        except actions.TooLong as long:
            text = f"These are {long.words:,} words; at most {long.limit:,} fit. Nothing was saved."
            raise Problem(413, "wrap-up-too-long", text, words=long.words, limit=long.limit) from None
        return Response(_told(wrap_up))

    @described("delete_wrap_up", tag="wrap-ups", by_id=True, gives={204: None}, errors=NOT_IN_PLAN)
    def delete(self, request: Request, wrap_up: UUID) -> HttpResponse:
        """Delete a wrap-up, also from what the advisor knew in later conversations. It is not written again."""
        try:
            actions.delete(wrap_up, by=self.caller.user.pk)
        except actions.NotFound:
            raise NotFound from None
        return HttpResponse(status=204)


class OfSession(_InPlan):
    """What became of a session's wrap-up."""

    scopes = {"GET": READ}

    @described(
        "get_session_wrap_up", tag="wrap-ups", by_id=True, gives={200: SessionWrapUpOut}, errors=NOT_IN_PLAN
    )
    def get(self, request: Request, session: UUID) -> Response:
        """The wrap-up of a session, or why there is none."""
        if sessions.get_session(session) is None:
            raise NotFound
        told = {"state": queries.state_of(session) or "open", "wrap_up": queries.wrap_up_of(session)}
        return Response(SessionWrapUpOut(told).data)


def _told(wrap_up: UUID) -> Any:
    found: Found | None = queries.get_wrap_up(wrap_up)
    if found is None:
        raise NotFound
    return WrapUpOut(found).data


def _cursor(told: dict[str, Any]) -> dict[str, str]:
    return {"before": told["session_last_activity_at"], "before_id": told["id"]}


def _edit(given: dict[str, Any]) -> Edit:
    lists = {
        name: [EditedItem(item["text"], item["id"]) for item in given[name]]
        for name in ("decisions", "open_items", "new_context")
    }
    return Edit(given["summary"], next_session_note=given["next_session_note"], **lists)
