"""Building the system prompt of a session: every section in the order of the settings, kept in parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from brain import actions
from brain.domain.prompt import RenderedPart, Section, SectionRequest, parts
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit

SectionFunction = Callable[[SectionRequest], Awaitable[Section | None]]


@dataclass(frozen=True)
class StoredPart:
    """A part of the frozen prompt as an event names it, with its text for the projection."""

    name: str
    digest: str
    source_kind: str
    source_id: UUID | None
    text: str


async def build(request: SectionRequest) -> list[StoredPart]:
    """Render and store the system prompt for a session; `brain.domain.prompt.assemble` makes the text of it.

    Sections run one after the other, outside of any transaction, since one may wait (for the notes on the
    conversation that has just closed). An error of a section is the caller's: a prompt is never frozen with
    a hole in it.
    """
    rendered: list[RenderedPart] = []
    for function in section_functions(tuple(settings.PROMPT_SECTIONS)):
        section = await function(request)
        rendered += parts(section) if section else ()
    digests = await unit(Scope(request.tenant_id, request.customer_id), actions.store_parts, rendered)
    return [
        StoredPart(part.name, digest, part.source_kind, part.source_id, part.text)
        for part, digest in zip(rendered, digests, strict=True)
    ]


@cache
def section_functions(paths: tuple[str, ...]) -> tuple[SectionFunction, ...]:
    """The functions behind the dotted paths; ImportError names the one that is wrong."""
    return tuple(import_string(path) for path in paths)
