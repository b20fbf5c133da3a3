"""The kinds of sources that prompts are made of, as the settings name them; and the documents as such sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils.module_loading import import_string

from brain.domain.sources import Link, Source
from brain.models import DocumentVersion


class UnknownSource(LookupError):
    """PROMPT_SOURCES does not say how to ask whether a source of this kind still stands."""


def gone(named: Iterable[tuple[str, UUID | None]]) -> set[tuple[str, UUID]]:
    """Which of the (kind, id) are sources that were deleted or redacted. UnknownSource for a kind nobody answers for.

    What has no id, such as the product's own instructions, is always there.
    """
    return {
        (kind, each) for kind, ids in _by_kind(named).items() for each in ids - source(kind).standing(ids)
    }


def links(named: Iterable[tuple[str, UUID | None]]) -> dict[tuple[str, UUID], Link]:
    """Where the sources can be read, of those that stand and have a page."""
    return {
        (kind, each): link
        for kind, ids in _by_kind(named).items()
        for each, link in source(kind).links(ids).items()
    }


def kinds() -> Collection[str]:
    """The kinds somebody answers for."""
    return settings.PROMPT_SOURCES.keys()


def source(kind: str) -> Source:
    """The source of that kind."""
    path = settings.PROMPT_SOURCES.get(kind)
    if path is None:
        raise UnknownSource(f"PROMPT_SOURCES names no source for parts of kind {kind!r}")
    return _named(path)


@cache
def _named(path: str) -> Source:
    found: Source = import_string(path)
    return found


def _by_kind(named: Iterable[tuple[str, UUID | None]]) -> dict[str, set[UUID]]:
    found: dict[str, set[UUID]] = {}
    for kind, each in named:
        if each is not None:
            found.setdefault(kind, set()).add(each)
    return found


def _standing(ids: Collection[UUID]) -> set[UUID]:
    rows = DocumentVersion.objects.filter(id__in=ids, redacted_on=None)
    return set(rows.values_list("id", flat=True))


def _links(ids: Collection[UUID]) -> Mapping[UUID, Link]:
    rows = DocumentVersion.objects.filter(id__in=ids, redacted_on=None).values_list("id", "kind", "version")
    return {
        each: Link(reverse("document-version", args=[kind, version]), f"{kind.upper()}, version {version}")
        for each, kind, version in rows
    }


document = Source(_standing, _links)
