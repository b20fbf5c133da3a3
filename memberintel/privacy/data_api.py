"""The API of what is one's own: taking it along, and erasing it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Strict, Text
from memberintel.accounts.problems import Problem
from memberintel.accounts.rest import Endpoint, Streaming, body, described
from memberintel.privacy import erase, export, sending, tasks
from memberintel.privacy.data_pages import BUSY, LOCKED
from memberintel.vault.errors import CannotOpen


class ErasureIn(Strict):
    """What to erase, and the password once more."""

    what = serializers.ChoiceField(
        choices=["me", "account"],
        help_text="`account`: with all colleagues and everything of theirs. For owners.",
    )
    password = Text(max_length=200)


class ErasureOut(serializers.Serializer[Any]):
    """An erasure that has begun; it goes on by itself."""

    id = serializers.UUIDField(help_text="The number under which one can ask about it.")
    begun_at = serializers.DateTimeField(source="asked_at")

    class Meta:
        ref_name = "Erasure"


class Erase(Endpoint):
    """Erasing oneself, or as an owner the whole account."""

    scopes = {"POST": ("account",)}
    costs = {"POST": "erase"}

    @described(
        "erase",
        tag="privacy",
        takes=ErasureIn,
        gives={202: ErasureOut},
        errors={
            403: "The password is wrong, only an owner may do this, or the token lacks the scope.",
            409: "It cannot be done as things are; `detail` says why.",
        },
    )
    def post(self, request: Request) -> Response:
        """Erase everything for good. Nobody can undo it.

        From the answer on no sign-in and no token works; the key goes first, then every row.
        """
        given, user = body(request, ErasureIn), self.caller.user
        try:
            begun = erase.asked_for(user, given["password"], whole=given["what"] == "account")
        except erase.NotAllowed as refused:
            raise Problem(403, "not-allowed", refused.text) from None
        except erase.Refused as refused:
            raise Problem(409, "refused", refused.text) from None
        tasks.nudge()
        return Response(ErasureOut(begun).data, status=202)


class Export(Streaming):
    """Everything that is the customer's, as one file."""

    scopes = {"GET": ("read",)}
    costs = {"GET": "export"}

    @described(
        "export",
        tag="privacy",
        gives={
            200: OpenApiResponse(
                OpenApiTypes.BINARY, description="A zip, of the form docs/export.md describes."
            )
        },
        media_type="application/zip",
    )
    async def get(self, request: HttpRequest) -> HttpResponseBase:
        """Take a copy of everything: conversations, notes, journal, documents, usage and who looked.

        It is made while it is sent. A file that ends early has no manifest and is refused wherever it is read.
        """
        try:
            return await sending.archive(self.caller.user.pk)
        except export.Busy:
            raise Problem(503, "busy", BUSY, headers={"Retry-After": "60"}) from None
        except CannotOpen:
            raise Problem(503, "locked", LOCKED, headers={"Retry-After": "600"}) from None
