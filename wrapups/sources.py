"""Wrap-ups, and the drafts that stand in for them, as sources of prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.urls import reverse

from brain.domain.sources import Link, Source
from wrapups.models import ClosingJob, JobState, SessionLog

GONE = (JobState.DELETED, JobState.EXPIRED)


def _wrap_ups(ids: Collection[UUID]) -> set[UUID]:
    return set(SessionLog.objects.filter(id__in=ids).values_list("id", flat=True))


def _wrap_up_links(ids: Collection[UUID]) -> Mapping[UUID, Link]:
    return {each: Link(reverse("wrap-up", args=[each]), "these notes") for each in _wrap_ups(ids)}


def _drafts(ids: Collection[UUID]) -> set[UUID]:
    """A draft is no row. It stands while its session does and its wrap-up was not deleted: `ids` are sessions'."""
    jobs = ClosingJob.objects.filter(session_id__in=ids, kind="wrap_up").exclude(state__in=GONE)
    return set(jobs.values_list("session_id", flat=True))


def _draft_links(ids: Collection[UUID]) -> Mapping[UUID, Link]:
    return {each: Link(reverse("session", args=[each]), "that conversation") for each in _drafts(ids)}


wrap_up = Source(_wrap_ups, _wrap_up_links)
draft = Source(_drafts, _draft_links)
