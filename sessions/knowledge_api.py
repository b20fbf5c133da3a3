"""What the advisor knew in a session, over the API."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Strict
from memberintel.accounts.problems import NotFound
from memberintel.accounts.rest import Endpoint, described, listed, parameters
from sessions import knowledge, queries
from sessions.knowledge import KINDS, Known


class EntryOut(serializers.Serializer[Any]):
    """One thing the advisor was told."""

    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes fields out of the class
    text = serializers.CharField(source="body", help_text="Empty once it was removed.")
    source_kind = serializers.CharField(help_text="What it came from: a document, a wrap-up, a memory, ...")
    source_id = serializers.UUIDField(allow_null=True)
    address = serializers.CharField(
        source="link.address", default=None, allow_null=True, help_text="The page that shows the source."
    )
    removed_on = serializers.DateField(allow_null=True, help_text="When its source was removed.")
    readable = serializers.BooleanField(help_text="False when it cannot be opened; then text is empty.")

    class Meta:
        ref_name = "KnownEntry"


class SectionOut(serializers.Serializer[Any]):
    """A section of what it was told."""

    name = serializers.CharField()
    entries = EntryOut(many=True)

    class Meta:
        ref_name = "KnownSection"


class KnownOut(serializers.Serializer[Any]):
    """What the advisor was told at event `seq`: a whole prompt, or what was recalled for one message."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=list(KINDS))
    late = serializers.BooleanField(help_text="Looking up took too long, so something may be missing.")
    sections = SectionOut(many=True)

    class Meta:
        ref_name = "Known"


class KnowledgeOut(serializers.Serializer[Any]):
    """All of it in order; `next` is the address of the next page, or null."""

    items = KnownOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "Knowledge"


class KnowledgePage(Strict):
    """Which part of it."""

    after = serializers.IntegerField(
        default=0, min_value=0, max_value=2**31 - 1, help_text="Later than this event."
    )
    limit = serializers.IntegerField(default=20, min_value=1, max_value=100)


class Knowledge(Endpoint):
    """What the advisor knew in a session."""

    scopes = {"GET": ("read",)}

    @described("get_knowledge", tag="sessions", by_id=True, query=KnowledgePage, gives={200: KnowledgeOut})
    def get(self, request: Request, session: UUID) -> Response:
        """What the advisor was told in this session, word for word, with where each part came from."""
        asked = parameters(request, KnowledgePage)
        if queries.get_session(session) is None:
            raise NotFound
        found = knowledge.known(session, after=asked["after"], limit=asked["limit"] + 1)
        items = [_told(each) for each in found]
        return listed(request, items, lambda last: {"after": str(last["seq"])}, asked["limit"])


def _told(known: Known) -> dict[str, Any]:
    return cast("dict[str, Any]", KnownOut(known).data)
