"""The API of wrap-ups, for plans that have them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts import gate
from memberintel.accounts.fields import Flag, Moment, Page, Strict, Text
from memberintel.accounts.problems import Invalid, NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, listed, parameters
from memberintel.tenancy.models import Tier
from sessions import queries as sessions
from wrapups import actions, queries
from wrapups.actions import Edit, EditedItem
from wrapups.domain.open_items import STATUSES
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
        child=serializers.IntegerField(),
        help_text="Numbers of the session's messages it rests on, counted from 1.",
    )
    seqs = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Their places in the session's log; a transcript has them.",
    )

    class Meta:
        ref_name = "WrapUpItem"


class ResolutionOut(serializers.Serializer[Any]):
    """Since when an open item stands as it does; by which session and message, null when the customer did it."""

    at = serializers.DateTimeField()
    session = serializers.UUIDField(allow_null=True)
    seq = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "OpenItemMark"


class LeftOpenOut(ItemOut):
    """An open item of a wrap-up, and what became of it."""

    status = serializers.ChoiceField(choices=list(STATUSES))
    mark = ResolutionOut(allow_null=True)

    class Meta:
        ref_name = "WrapUpOpenItem"


class WrapUpOut(serializers.Serializer[Any]):
    """The notes on a finished session."""

    id = serializers.UUIDField()
    session = serializers.UUIDField(source="session_id")
    session_started_at = serializers.DateTimeField()
    session_last_activity_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    edited_at = serializers.DateTimeField(allow_null=True)
    edited_by_staff = serializers.BooleanField(
        help_text="Whether our support edited it last, on your behalf."
    )
    readable = serializers.BooleanField(help_text="False when it cannot be opened; then the texts are empty.")
    summary = serializers.CharField()
    decisions = ItemOut(many=True)
    open_items = LeftOpenOut(many=True)
    new_context = ItemOut(many=True)
    next_session_note = serializers.CharField()
    word_count = serializers.IntegerField()
    shortened = serializers.BooleanField(help_text="Whole items were left out to keep within the cap.")
    dropped = serializers.IntegerField(help_text="Items left out because no message said so, or refused.")
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


class OpenItemOut(serializers.Serializer[Any]):
    """An open item, of whichever wrap-up. `text` is null when it cannot be opened."""

    id = serializers.UUIDField()
    wrap_up = serializers.UUIDField()
    session = serializers.UUIDField()
    session_started_at = serializers.DateTimeField()
    session_last_activity_at = serializers.DateTimeField()
    text = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField(choices=list(STATUSES))
    mark = ResolutionOut(allow_null=True)

    class Meta:
        ref_name = "OpenItem"


class OpenItemsOut(serializers.Serializer[Any]):
    """Open items, those of the newest session first; `next` is the address of the next page, or null."""

    items = OpenItemOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "OpenItems"


class StateOut(serializers.Serializer[Any]):
    """What became of the notes of a closed session."""

    id = serializers.UUIDField(source="job_id")
    session = serializers.UUIDField(source="session_id")
    session_started_at = serializers.DateTimeField()
    session_last_activity_at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=JobState.values)

    class Meta:
        ref_name = "WrapUpState"


class StatesOut(serializers.Serializer[Any]):
    """States, newest session first; `next` is the address of the next page, or null."""

    items = StateOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "WrapUpStates"


class WrapUpsPage(Page):
    """Which wrap-ups."""

    q = Text(required=False, max_length=500, help_text="Words that must all occur.")
    since = Moment(required=False, help_text="Of sessions active at or after this moment.")
    until = Moment(required=False, help_text="Of sessions last active before this moment.")
    open_items = serializers.BooleanField(required=False, help_text="Of which something is still open.")


class OpenItemsPage(Page):
    """Which open items. The cursor is the wrap-up of the last one: a page ends with a whole wrap-up."""

    status = serializers.ChoiceField(choices=list(STATUSES), default="open")


class StatesPage(Page):
    """Which sessions."""

    state = serializers.ChoiceField(choices=JobState.values, required=False)


class TickIn(Strict):
    """What became of an open item."""

    resolved = Flag(help_text="True: ticked off. False: put back.")


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

    @described(
        "list_wrap_ups", tag="wrap-ups", query=WrapUpsPage, gives={200: WrapUpsOut}, errors=NOT_IN_PLAN
    )
    def get(self, request: Request) -> Response:
        """Wrap-ups by their session's last activity, newest first."""
        page = parameters(request, WrapUpsPage)
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


class OpenItems(_InPlan):
    """What conversations left open."""

    scopes = {"GET": READ}

    @described(
        "list_open_items", tag="wrap-ups", query=OpenItemsPage, gives={200: OpenItemsOut}, errors=NOT_IN_PLAN
    )
    def get(self, request: Request) -> Response:
        """Open items, or those resolved or parked; of the newest session first."""
        page = parameters(request, OpenItemsPage)
        limit = page.pop("limit")
        shown, more = queries.whole_wrap_ups(queries.open_items_of(limit=limit + 1, **page), limit)
        texts = queries.texts_of(shown)
        told = [{**asdict(item), "status": item.status, "text": texts.get(item.id)} for item in shown]
        following = None
        if more:
            last = {
                "before": told[-1]["session_last_activity_at"].isoformat(),
                "before_id": shown[-1].wrap_up,
            }
            following = f"{request.path}?{urlencode({**request.GET.dict(), **last})}"
        return Response(OpenItemsOut({"items": told, "next": following}).data)


class Item(_InPlan):
    """One open item of a wrap-up."""

    scopes = {"PUT": CHANGE}

    @described(
        "tick_open_item", tag="wrap-ups", by_id=True, takes=TickIn, gives={204: None}, errors=NOT_IN_PLAN
    )
    def put(self, request: Request, wrap_up: UUID, item: UUID) -> HttpResponse:
        """Tick an open item off, or put it back. The wrap-up itself is not changed."""
        try:
            actions.tick(wrap_up, item, done=body(request, TickIn)["resolved"])
        except actions.NotFound:
            raise NotFound from None
        return HttpResponse(status=204)


class States(_InPlan):
    """What became of the notes of each session."""

    scopes = {"GET": READ}

    @described(
        "list_wrap_up_states", tag="wrap-ups", query=StatesPage, gives={200: StatesOut}, errors=NOT_IN_PLAN
    )
    def get(self, request: Request) -> Response:
        """Closed sessions with the state of their wrap-up, newest first; or those in one state."""
        page = parameters(request, StatesPage)
        limit = page.pop("limit")
        found = queries.list_states(limit=limit + 1, **page)
        return listed(request, list(StateOut(found, many=True).data), _cursor, limit)


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
