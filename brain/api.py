"""The API of the customer's documents, SOUL and BIBLE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from brain import actions, queries
from brain.domain.diff import diff
from brain.domain.documents import KINDS, DocumentText, Kind, NoVersion, Rejected, Stale, TooLong
from brain.domain.documents import Version as DocumentVersion
from memberintel.accounts.fields import Strict, Text, Whole
from memberintel.accounts.problems import NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, parameters
from memberintel.vault.errors import Damaged

READ = ("read", "brain")
SIGNS = ["same", "removed", "added"]


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
    text = serializers.CharField(help_text="Empty once it was removed.")
    author = serializers.ChoiceField(choices=["customer", "advisor", "staff"])
    reason = serializers.CharField()
    at = serializers.DateTimeField()
    session = serializers.UUIDField(
        source="origin.session", default=None, allow_null=True, help_text="Where the advisor wrote it."
    )
    message = serializers.IntegerField(
        source="origin.message_seq",
        default=None,
        allow_null=True,
        help_text="The number in there of the message it answered.",
    )
    restores = serializers.IntegerField(allow_null=True, help_text="The version whose text it brought back.")
    changes = serializers.ListField(
        child=serializers.CharField(), help_text="What was done to the advisor's words before they were kept."
    )
    removed_on = serializers.DateField(
        source="redacted_on", allow_null=True, help_text="When you removed what it said."
    )
    readable = serializers.BooleanField(help_text="False when it cannot be opened; then text is empty.")

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


class RestoreIn(Strict):
    """Bring back what a version said."""

    base_version = Whole(min_value=0, help_text="The version that stands, as you know it.")
    reason = Text(max_length=300, allow_blank=True, default="")


class PieceOut(serializers.Serializer[Any]):
    """A stretch within a line."""

    sign = serializers.ChoiceField(choices=SIGNS)
    text = serializers.CharField(trim_whitespace=False)

    class Meta:
        ref_name = "DiffPiece"


class LineOut(serializers.Serializer[Any]):
    """A line of either version or of both; its pieces together are the line."""

    sign = serializers.ChoiceField(choices=SIGNS)
    pieces = PieceOut(many=True)

    class Meta:
        ref_name = "DiffLine"


class DiffOut(serializers.Serializer[Any]):
    """The lines of both versions in order, removed ones before those that took their place."""

    before = serializers.IntegerField()
    after = serializers.IntegerField()
    lines = LineOut(many=True)

    class Meta:
        ref_name = "Diff"


class Compared(Strict):
    """Which two versions."""

    before = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    after = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


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
        with _refusals():
            saved = actions.save_document(
                kind=known,
                body=given["text"],
                base_version=given["base_version"],
                by="customer",
                reason=given["reason"],
            )
        return Response(DocumentOut(saved).data)


class Versions(Endpoint):
    """What a document once said."""

    scopes = {"GET": READ}

    @described(
        "list_document_versions", tag="brain", by_id=True, query=VersionsPage, gives={200: VersionsOut}
    )
    def get(self, request: Request, kind: str) -> Response:
        """What a document once said, newest first."""
        known, page = _known(kind), parameters(request, VersionsPage)
        found = queries.versions(known, before=page.get("before"), limit=page["limit"] + 1)
        shown, more = found[: page["limit"]], len(found) > page["limit"]
        following = f"{request.path}?limit={page['limit']}&before={shown[-1].version}" if more else None
        return Response(VersionsOut({"items": shown, "next": following}).data)


class Version(Endpoint):
    """One version of a document."""

    scopes = {"GET": READ, "DELETE": ("brain",)}

    @described("get_document_version", tag="brain", by_id=True, gives={200: VersionOut})
    def get(self, request: Request, kind: str, version: int) -> Response:
        """What the document said in that version, who wrote it and why."""
        return Response(VersionOut(_found(_known(kind), version)).data)

    @described(
        "remove_document_version",
        tag="brain",
        by_id=True,
        gives={200: VersionOut},
        errors={409: "It is what the document says now, or was removed before."},
    )
    def delete(self, request: Request, kind: str, version: int) -> Response:
        """Take what the version said out of it, and out of every prompt it ever stood in. Its row and day stay."""
        known = _known(kind)
        try:
            actions.redact(kind=known, version=version)
        except NoVersion:
            raise NotFound from None
        except Rejected as rejected:
            raise Problem(409, "version-not-removed", str(rejected)) from None
        return Response(VersionOut(_found(known, version)).data)


class Restore(Endpoint):
    """Bringing a version back."""

    scopes = {"POST": ("brain",)}

    @described(
        "restore_document_version",
        tag="brain",
        by_id=True,
        takes=RestoreIn,
        gives={200: DocumentOut},
        errors={
            409: "Somebody saved another version meanwhile (`document` stands now), or this version was removed.",
            413: "The text is over the cap of its kind; `limit` and `tokens` say by how much.",
        },
    )
    def post(self, request: Request, kind: str, version: int) -> Response:
        """Save what the version said as a new one. If the document says that already, it makes none."""
        known, given = _known(kind), body(request, RestoreIn)
        try:
            with _refusals():
                saved = actions.restore(kind=known, version=version, by="customer", **given)
        except NoVersion:
            raise NotFound from None
        except Rejected as rejected:
            raise Problem(409, "version-removed", str(rejected)) from None
        return Response(DocumentOut(saved).data)


class Diff(Endpoint):
    """Two versions beside each other."""

    scopes = {"GET": READ}

    @described(
        "compare_document_versions",
        tag="brain",
        by_id=True,
        query=Compared,
        gives={200: DiffOut},
        errors={409: "One of them was removed, or cannot be opened."},
    )
    def get(self, request: Request, kind: str) -> Response:
        """What changed from one version to another, in lines and in words."""
        known, asked = _known(kind), parameters(request, Compared)
        before, after = _found(known, asked["before"]), _found(known, asked["after"])
        for each in (before, after):
            if each.redacted_on or not each.readable:
                raise Problem(
                    409, "version-removed", f"What version {each.version} said cannot be read any more."
                )
        lines = diff(before.text, after.text)
        return Response(DiffOut({"before": before.version, "after": after.version, "lines": lines}).data)


@contextmanager
def _refusals() -> Iterator[None]:
    """Stale and TooLong as the problems they are told as."""
    try:
        yield
    except Stale as stale:
        raise Problem(409, "stale-document", str(stale), document=DocumentOut(stale.fresh).data) from None
    except TooLong as long:
        raise Problem(413, "document-too-long", str(long), tokens=long.tokens, limit=long.limit) from None


def _found(kind: Kind, version: int) -> DocumentVersion:
    found = queries.version(kind, version)
    if found is None:
        raise NotFound
    return found


def _known(kind: str) -> Kind:
    if kind not in KINDS:
        raise NotFound
    return kind


def _told(kind: Kind) -> Any:
    try:
        return DocumentOut(queries.document(kind)).data
    except Damaged:
        return {**DocumentOut(DocumentText(kind)).data, "readable": False}
