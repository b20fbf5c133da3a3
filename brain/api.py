"""The API of the customer's documents, SOUL and BIBLE."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from brain import actions, queries
from brain.domain.documents import KINDS, DocumentText, Kind, Stale, TooLong
from memberintel.accounts.fields import Strict, Text, Whole
from memberintel.accounts.problems import NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, parameters
from memberintel.vault.errors import Damaged

READ = ("read", "brain")


class DocumentOut(serializers.Serializer[Any]):
    """A document as it stands. Version 0 is one that nobody has written yet."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    version = serializers.IntegerField()
    text = serializers.CharField()
    updated_at = serializers.DateTimeField(allow_null=True)
    updated_by = serializers.ChoiceField(choices=["customer", "advisor", "staff"], allow_null=True)
    readable = serializers.BooleanField(
        default=True, help_text="False when it cannot be opened; then text is empty."
    )

    class Meta:
        ref_name = "Document"


class DocumentsOut(serializers.Serializer[Any]):
    """Both documents."""

    items = DocumentOut(many=True)

    class Meta:
        ref_name = "Documents"


class DocumentIn(Strict):
    """A new version of a document."""

    text = Text(allow_blank=True)
    base_version = Whole(min_value=0, help_text="The version this edit was made on; 0 if there was none.")
    reason = Text(
        max_length=300, allow_blank=True, default="", help_text="Why, for whoever reads the versions."
    )


class VersionOut(serializers.Serializer[Any]):
    """A document as it was saved once."""

    version = serializers.IntegerField()
    text = serializers.CharField()
    author = serializers.ChoiceField(choices=["customer", "advisor", "staff"])
    reason = serializers.CharField()
    at = serializers.DateTimeField()

    class Meta:
        ref_name = "DocumentVersion"


class VersionsOut(serializers.Serializer[Any]):
    """Versions, newest first; `next` is the address of the next page, or null."""

    items = VersionOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "DocumentVersions"


class VersionsPage(Strict):
    """Which versions."""

    before = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Older than this."
    )
    limit = serializers.IntegerField(default=20, min_value=1, max_value=100)


class Documents(Endpoint):
    """SOUL and BIBLE."""

    scopes = {"GET": READ}

    @described("list_documents", tag="brain", gives={200: DocumentsOut})
    def get(self, request: Request) -> Response:
        """Both documents as they stand."""
        return Response({"items": [_told(kind) for kind in KINDS]})


class Document(Endpoint):
    """One of them."""

    scopes = {"GET": READ, "PUT": ("brain",)}

    @described("get_document", tag="brain", by_id=True, gives={200: DocumentOut})
    def get(self, request: Request, kind: str) -> Response:
        """A document as it stands."""
        return Response(_told(_known(kind)))

    @described(
        "put_document",
        tag="brain",
        by_id=True,
        takes=DocumentIn,
        gives={200: DocumentOut},
        errors={
            409: "Somebody saved another version meanwhile. `document` is what stands now: merge and send again.",
            413: "The text is over the cap of its kind; `limit` and `tokens` say by how much.",
        },
    )
    def put(self, request: Request, kind: str) -> Response:
        """Write a new version of a document. The same text again makes none."""
        known, given = _known(kind), body(request, DocumentIn)
        try:
            saved = actions.save_document(
                kind=known,
                body=given["text"],
                base_version=given["base_version"],
                by="customer",
                reason=given["reason"],
            )
        except Stale as stale:
            raise Problem(409, "stale-document", str(stale), document=DocumentOut(stale.fresh).data) from None
        except TooLong as long:
            raise Problem(413, "document-too-long", str(long), tokens=long.tokens, limit=long.limit) from None
        return Response(DocumentOut(saved).data)


class Versions(Endpoint):
    """What a document once said."""

    scopes = {"GET": READ}

    @described(
        "list_document_versions", tag="brain", by_id=True, query=VersionsPage, gives={200: VersionsOut}
    )
    def get(self, request: Request, kind: str) -> Response:
        """What a document once said, newest first. To restore a version, put its text."""
        known, page = _known(kind), parameters(request, VersionsPage)
        found = queries.versions(known, before=page.get("before"), limit=page["limit"] + 1)
        shown, more = found[: page["limit"]], len(found) > page["limit"]
        following = f"{request.path}?limit={page['limit']}&before={shown[-1].version}" if more else None
        return Response(VersionsOut({"items": shown, "next": following}).data)


def _known(kind: str) -> Kind:
    if kind not in KINDS:
        raise NotFound
    return kind


def _told(kind: Kind) -> Any:
    try:
        return DocumentOut(queries.document(kind)).data
    except Damaged:
        return {**DocumentOut(DocumentText(kind)).data, "readable": False}
