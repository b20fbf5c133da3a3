"""Entries of MEMORY as sources of prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.urls import reverse

from brain.domain.sources import Link, Source
from brain.models import MemoryEntry


def _standing(ids: Collection[UUID]) -> set[UUID]:
    return set(MemoryEntry.objects.filter(id__in=ids).values_list("id", flat=True))


def _links(ids: Collection[UUID]) -> Mapping[UUID, Link]:
    return {each: Link(reverse("memory", args=[each]), "this entry of MEMORY") for each in _standing(ids)}


memory = Source(_standing, _links)
