"""The API of privacy: who looked."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Page
from memberintel.accounts.rest import Endpoint, described, listed, parameters
from memberintel.privacy import queries


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
