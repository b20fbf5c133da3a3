"""The API of privacy: who looked, and how long things are kept."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Page, Strict, Whole
from memberintel.accounts.problems import Problem
from memberintel.accounts.rest import Endpoint, body, described, listed, parameters
from memberintel.privacy import keeping, queries, retention


class AuditEntryOut(serializers.Serializer[Any]):
    """One thing that staff did with what is the customer's."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    action = serializers.CharField(help_text="A word: `opened`, `edited`, `access_granted`, ...")
    who = serializers.CharField(help_text="The role, in words. Staff are not named.")
    what = serializers.CharField(help_text="What it was done to, in words; may be empty.")
    reason = serializers.CharField(allow_null=True, help_text="Why, as staff said it.")

    class Meta:
        ref_name = "AuditEntry"


class AuditOut(serializers.Serializer[Any]):
    """What staff did, newest first; `next` is the address of the next page, or null."""

    items = AuditEntryOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "Audit"


class Audit(Endpoint):
    """Who looked."""

    scopes = {"GET": ("account",)}

    @described("list_audit", tag="privacy", query=Page, gives={200: AuditOut})
    def get(self, request: Request) -> Response:
        """What staff opened, edited and changed of the customer's, newest first."""
        page = parameters(request, Page)
        limit = page.pop("limit")
        found = queries.seen_by_staff(limit=limit + 1, **page)
        return listed(request, list(AuditEntryOut(found, many=True).data), _cursor, limit)


def _cursor(told: dict[str, Any]) -> dict[str, str]:
    return {"before": told["at"], "before_id": told["id"]}


def _days() -> Whole:
    return Whole(
        min_value=0,
        max_value=keeping.MOST,
        allow_null=True,
        help_text="Days; 0 is for good, null is what the plan says.",
    )


class RetentionIn(Strict):
    """What the account says of each kind."""

    events = _days()
    wrap_ups = _days()
    journal = _days()
    memory = _days()


class KeptOut(serializers.Serializer[Any]):
    """How many days each kind is kept; null is for good."""

    events = serializers.IntegerField(allow_null=True)
    wrap_ups = serializers.IntegerField(allow_null=True)
    journal = serializers.IntegerField(allow_null=True)
    memory = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "Kept"


class SaidOut(KeptOut):
    """What the account itself says: days, 0 is for good, null is what the plan says."""

    class Meta:
        ref_name = "SaidOfKeeping"


class RetentionOut(serializers.Serializer[Any]):
    """How long content is kept, and what of that the account itself says."""

    kept = KeptOut()
    said = SaidOut()

    class Meta:
        ref_name = "Retention"


class Retention(Endpoint):
    """How long content is kept."""

    scopes = {"GET": ("read", "account"), "PUT": ("account",)}

    @described("get_retention", tag="privacy", gives={200: RetentionOut})
    def get(self, request: Request) -> Response:
        """How many days conversations, wrap-ups, journal and MEMORY of the account are kept."""
        return _retention()

    @described(
        "set_retention",
        tag="privacy",
        takes=RetentionIn,
        gives={200: RetentionOut},
        errors={403: "Only an owner of the account may change this, or the token lacks the scope."},
    )
    def put(self, request: Request) -> Response:
        """Say how long each kind is kept, for everybody in the account.

        What is older is deleted by the next daily run, without a further question, and cannot be brought back.
        """
        given = body(request, RetentionIn)
        if not self.caller.user.is_owner:
            raise Problem(403, "owners-only", "Only an owner of the account may change this.")
        keeping.choose(by=self.caller.user.pk, days={kind: given[kind] for kind in retention.KINDS})
        return _retention()


def _retention() -> Response:
    return Response(RetentionOut({"kept": retention.here(), "said": keeping.said()}).data)
