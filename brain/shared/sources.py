"""Published articles as sources of prompts. One that is withdrawn meanwhile is not kept as what a model was told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.urls import reverse

from brain.domain.sources import Link, Source
from brain.models import Knowledge


def _standing(ids: Collection[UUID]) -> set[UUID]:
    return set(Knowledge.objects.filter(id__in=ids).values_list("id", flat=True))


def _links(ids: Collection[UUID]) -> Mapping[UUID, Link]:
    rows = Knowledge.objects.filter(id__in=ids).values_list("id", "slug", "title")
    return {each: Link(reverse("article", args=[slug]), title) for each, slug, title in rows}


article = Source(_standing, _links)
