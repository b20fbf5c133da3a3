"""The API of what is one's own: taking it along."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse

from memberintel.accounts.problems import Problem
from memberintel.accounts.rest import Streaming, described
from memberintel.privacy import export, sending
from memberintel.privacy.data_pages import BUSY, LOCKED
from memberintel.vault.errors import CannotOpen


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
