"""The API of sites, their sources and their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms as django_forms
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from brain.domain.heartbeat.csv_file import MOST_BYTES, BadFile
from brain.domain.heartbeat.metrics import COUNTS, SOURCE_KINDS, Day, in_major
from brain.heartbeat import actions, forms, queries
from brain.heartbeat.actions import LONGEST_NAME, Refused
from brain.heartbeat.queries import NotFound as Nothing
from brain.heartbeat.queries import SiteView
from brain.heartbeat.sources import ASKED, Failed
from memberintel.accounts.domain import time_zones
from memberintel.accounts.fields import Day as DayIn
from memberintel.accounts.fields import Strict, Text
from memberintel.accounts.problems import Invalid, NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, parameters
from memberintel.lib import clock

READ = ("read", "brain")
ACCOUNT = ("account",)
OWNERS = {403: "Only an owner of the account may do this, or the token lacks the scope."}
MOST_DAYS = 370


class SourceOut(serializers.Serializer[Any]):
    """Where numbers come from. What it is opened with is never told."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=list(SOURCE_KINDS))
    state = serializers.ChoiceField(choices=["connected", "failing", "disconnected"])
    through = serializers.DateField(allow_null=True, help_text="The last day it gave.")
    last_synced_at = serializers.DateTimeField(allow_null=True)
    last_tried_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(
        allow_blank=True, help_text="A code; empty when the last try went well."
    )

    class Meta:
        ref_name = "Source"


class SiteOut(serializers.Serializer[Any]):
    """A site."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    time_zone = serializers.CharField(help_text="Its days are counted in it.")
    sources = SourceOut(many=True)

    class Meta:
        ref_name = "Site"


class SitesOut(serializers.Serializer[Any]):
    """All sites."""

    items = SiteOut(many=True)

    class Meta:
        ref_name = "Sites"


class SiteIn(Strict):
    """A site's name and time zone."""

    name = Text(max_length=LONGEST_NAME)
    time_zone = Text(max_length=64)

    def validate_name(self, name: str) -> str:
        """Not blank."""
        if not name.strip():
            raise serializers.ValidationError("Give the site a name.")
        return name

    def validate_time_zone(self, name: str) -> str:
        """One we know."""
        if name not in time_zones():
            raise serializers.ValidationError(
                "There is no such time zone; give a name such as Europe/London."
            )
        return name


class HeartbeatOut(serializers.Serializer[Any]):
    """What a site's numbers tell. Before the first numbers `day` and `text` are null."""

    day = serializers.DateField(allow_null=True)
    text = serializers.CharField(allow_null=True)
    readable = serializers.BooleanField(help_text="False when it cannot be opened.")

    class Meta:
        ref_name = "Heartbeat"


class AmountOut(serializers.Serializer[Any]):
    """An amount in one currency, in the currency itself."""

    currency = serializers.CharField()
    amount = serializers.DecimalField(max_digits=20, decimal_places=3)

    class Meta:
        ref_name = "Amount"


class DayOut(serializers.Serializer[Any]):
    """The numbers of a day; null is a number nobody knows. Amounts of several currencies are never added."""

    day = serializers.DateField()
    mrr = AmountOut(many=True)
    active_members = serializers.IntegerField(allow_null=True)
    trials = serializers.IntegerField(allow_null=True)
    paused = serializers.IntegerField(allow_null=True)
    unpriced = serializers.IntegerField(allow_null=True, help_text="Paying, and not in MRR: metered, say.")
    new = serializers.IntegerField(allow_null=True)
    churned = serializers.IntegerField(allow_null=True)
    failed_payments = serializers.IntegerField(allow_null=True)
    trials_ended = serializers.IntegerField(allow_null=True)
    trials_converted = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "DayOfNumbers"


class DaysOut(serializers.Serializer[Any]):
    """Days, ascending."""

    items = DayOut(many=True)

    class Meta:
        ref_name = "DaysOfNumbers"


class DaysPage(Strict):
    """Which days, of which source. By default the last 30."""

    # mypy takes it for the attribute that fields have; DRF takes fields out of the class
    source = serializers.ChoiceField(choices=list(SOURCE_KINDS))  # type: ignore[assignment]
    first_day = DayIn(required=False)
    last_day = DayIn(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Not the wrong way round, and not too many."""
        first, last = attrs.get("first_day"), attrs.get("last_day")
        if first and last and not 0 <= (last - first).days < MOST_DAYS:
            raise serializers.ValidationError({"last_day": [f"Ask for 1 to {MOST_DAYS} days."]})
        return attrs


class UploadIn(Strict):
    """A file of numbers, as text: columns and rules are those of the page."""

    csv = Text(max_length=MOST_BYTES, allow_blank=True)


class UploadOut(serializers.Serializer[Any]):
    """What the file brought."""

    days = serializers.IntegerField()
    first = serializers.DateField()
    last = serializers.DateField()

    class Meta:
        ref_name = "Upload"


class SourceIn(Strict):
    """What a source is opened with. `url` and `currency` are for MemberPress."""

    kind = serializers.ChoiceField(choices=list(ASKED))
    key = Text(max_length=255)
    url = Text(max_length=2000, required=False)
    currency = Text(max_length=3, required=False)

    def to_internal_value(self, data: Any) -> Any:
        """The credentials, checked as the page checks them; nothing is sent anywhere yet."""
        given = super().to_internal_value(data)
        stripe = given["kind"] == "stripe"
        checks: dict[str, Any] = {"key": forms.stripe_key if stripe else forms.plain_key}
        if not stripe:
            checks |= {"url": forms.site_address, "currency": forms.currency_code}
        faults, credentials = {}, {}
        for name, check in checks.items():
            try:
                credentials[name] = check(given.get(name, ""))
            except django_forms.ValidationError as fault:
                faults[name] = fault.messages
        if faults:
            raise serializers.ValidationError(faults)
        return {"kind": given["kind"], "credentials": credentials}


class Owned(Endpoint):
    """An address some methods of which are for owners."""

    def _for_owners(self) -> None:
        if not self.caller.user.is_owner:
            raise Problem(403, "owners-only", "Only an owner of the account may do this. Ask one of them.")


class Sites(Owned):
    """The sites of the account."""

    scopes = {"GET": READ, "POST": ACCOUNT}

    @described("list_sites", tag="heartbeat", gives={200: SitesOut})
    def get(self, request: Request) -> Response:
        """All sites with their sources, oldest first."""
        return Response(SitesOut({"items": queries.sites()}).data)

    @described("add_site", tag="heartbeat", takes=SiteIn, gives={201: SiteOut}, errors=OWNERS)
    def post(self, request: Request) -> Response:
        """Add a site."""
        self._for_owners()
        given = body(request, SiteIn)
        with _as_problems():
            return Response(SiteOut(actions.add_site(**given)).data, status=201)


class Site(Owned):
    """One site."""

    scopes = {"GET": READ, "PUT": ACCOUNT, "DELETE": ACCOUNT}

    @described("get_site", tag="heartbeat", by_id=True, gives={200: SiteOut})
    def get(self, request: Request, site: UUID) -> Response:
        """A site with its sources."""
        return Response(SiteOut(_site(site)).data)

    @described("put_site", tag="heartbeat", by_id=True, takes=SiteIn, gives={200: SiteOut}, errors=OWNERS)
    def put(self, request: Request, site: UUID) -> Response:
        """Rename it, or count its days in another time zone from now on."""
        self._for_owners()
        given = body(request, SiteIn)
        with _as_problems():
            return Response(SiteOut(actions.change_site(site, **given)).data)

    @described("delete_site", tag="heartbeat", by_id=True, gives={204: None}, errors=OWNERS)
    def delete(self, request: Request, site: UUID) -> HttpResponse:
        """Delete it with its sources, its numbers and what they told, in every prompt too."""
        self._for_owners()
        with _as_problems():
            actions.delete_site(site)
        return HttpResponse(status=204)


class Heartbeat(Endpoint):
    """What a site's numbers tell."""

    scopes = {"GET": READ}

    @described("get_heartbeat", tag="heartbeat", by_id=True, gives={200: HeartbeatOut})
    def get(self, request: Request, site: UUID) -> Response:
        """The newest narrative, as the advisor reads it."""
        told = queries.told(_site(site).id)
        row = {
            "day": told.day if told else None,
            "text": told.text if told else None,
            "readable": told is None or told.text is not None,
        }
        return Response(HeartbeatOut(row).data)


class Numbers(Owned):
    """A site's numbers."""

    scopes = {"GET": READ, "POST": ("brain",)}

    @described("list_numbers", tag="heartbeat", by_id=True, query=DaysPage, gives={200: DaysOut})
    def get(self, request: Request, site: UUID) -> Response:
        """The numbers of one source, day by day. Days nobody knows are left out."""
        found = _site(site)  # first: whose site it is must not show in what is said of the parameters
        asked = parameters(request, DaysPage)
        source = found.source(asked["source"])
        last = asked.get("last_day")
        if last is None and "first_day" in asked:
            last = asked["first_day"] + timedelta(days=29)
        last = last or (source.through if source else None) or clock.now().date()
        first = asked.get("first_day") or last - timedelta(days=29)
        days = queries.days(site, asked["source"], first, last)
        return Response(DaysOut({"items": [_day(each) for each in days]}).data)

    @described(
        "upload_numbers",
        tag="heartbeat",
        by_id=True,
        takes=UploadIn,
        gives={200: UploadOut},
        errors={
            400: "The file has faults; `errors` names row and column of each, and nothing was kept.",
            **OWNERS,
        },
    )
    def post(self, request: Request, site: UUID) -> Response:
        """Keep the numbers of a CSV file. A number that is known already is replaced. For owners."""
        self._for_owners()
        given = body(request, UploadIn)
        try:
            with _as_problems():
                return Response(UploadOut(actions.upload(site, given["csv"].encode())).data)
        except BadFile as refused:
            raise Invalid([("csv", str(fault)) for fault in refused.faults], "bad-file") from None


class Sources(Owned):
    """The sources of a site."""

    scopes = {"POST": ACCOUNT}

    @described(
        "connect_source",
        tag="heartbeat",
        by_id=True,
        takes=SourceIn,
        gives={201: SourceOut},
        errors={**OWNERS, 409: "The source cannot be read with these; `detail` says why. Nothing was kept."},
    )
    def post(self, request: Request, site: UUID) -> Response:
        """Connect a source, or give it a new key. It is tried first, and its first numbers come within minutes."""
        self._for_owners()
        given = body(request, SourceIn)
        with _as_problems():
            made = actions.connect(site, given["kind"], given["credentials"])
            return Response(SourceOut(queries.source(site, made)).data, status=201)


class Source(Owned):
    """One source."""

    scopes = {"POST": ACCOUNT, "DELETE": ACCOUNT}

    @described(
        "try_source",
        tag="heartbeat",
        by_id=True,
        gives={200: SourceOut},
        errors={**OWNERS, 409: "It cannot be read; `detail` says why."},
    )
    def post(self, request: Request, site: UUID, source: UUID) -> Response:
        """Ask it whether it can be read, and if so for what is new of its numbers."""
        self._for_owners()
        with _as_problems():
            actions.try_again(site, source)
            return Response(SourceOut(queries.source(site, source)).data)

    @described("disconnect_source", tag="heartbeat", by_id=True, gives={204: None}, errors=OWNERS)
    def delete(self, request: Request, site: UUID, source: UUID) -> HttpResponse:
        """Destroy its key. Its numbers stay; delete the site to delete them."""
        self._for_owners()
        with _as_problems():
            actions.disconnect(site, source, forget=False)
        return HttpResponse(status=204)


@contextmanager
def _as_problems() -> Iterator[None]:
    """What an action refuses, as a problem."""
    try:
        yield
    except Nothing:
        raise NotFound from None
    except Refused as refusal:
        raise Problem(409, "refused", str(refusal)) from None
    except Failed as failure:
        raise Problem(409, "source-unreadable", failure.message, reason=failure.code) from None


def _site(site: UUID) -> SiteView:
    with _as_problems():
        return queries.site(site)


def _day(day: Day) -> dict[str, Any]:
    amounts = [{"currency": code, "amount": in_major(minor, code)} for code, minor in day.numbers.mrr.items()]
    counts = {name: day.numbers.counts.get(name) for name in COUNTS}
    return {"day": day.day, "mrr": amounts, **counts}
