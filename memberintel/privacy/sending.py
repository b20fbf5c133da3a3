"""The archive as a response: what the page and the API do alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from django.http import StreamingHttpResponse

from memberintel.lib import clock
from memberintel.privacy import export
from memberintel.tenancy.context import current_scope
from memberintel.tenancy.unit import unit


async def archive(by: UUID) -> StreamingHttpResponse:
    """The archive of the customer of the current scope, once it is on record that it was taken.

    Busy, or CannotOpen without their key, before anything is sent.
    """
    who = current_scope()
    blocks = export.stream(who)
    await unit(who, export.begin, by=by)
    return packed(blocks)


def packed(blocks: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """The blocks of an archive as a file to keep."""
    response = StreamingHttpResponse(blocks, content_type="application/zip")
    name = f"memberintel-{clock.now():%Y-%m-%d}.zip"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response
