"""Staff write shared knowledge on the desk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from brain.models import Knowledge, KnowledgeDraft
from tests.admin.staff import make_staff, sign_in
from tests.conftest import login_as

LIST = "/admin/brain/knowledgedraft/"


@pytest.fixture
def desk() -> Client:
    return sign_in(make_staff())


@pytest.fixture
def slug() -> Iterator[str]:
    """Of an article that is gone afterwards."""
    made = f"hive-{uuid4().hex[:8]}"
    yield made
    with login_as("owner"):
        KnowledgeDraft.objects.filter(slug=made).delete()
        Knowledge.objects.filter(slug=made).delete()


def act(desk: Client, name: str, row: KnowledgeDraft) -> Any:
    return desk.post(LIST, {"action": name, "_selected_action": str(row.pk), "index": 0})


def test_an_article_is_drafted_published_changed_and_withdrawn(desk: Client, slug: str) -> None:
    form = {"title": "On hives", "topic": "Beekeeping", "slug": slug, "text": "Smoke the hive."}
    assert desk.post(f"{LIST}add/", form).status_code == 302
    draft = KnowledgeDraft.objects.using("support").get(slug=slug)
    assert not Knowledge.objects.filter(slug=slug).exists()
    act(desk, "publish", draft)
    assert Knowledge.objects.get(slug=slug).text == "Smoke the hive."
    change = f"{LIST}{draft.pk}/change/"
    assert desk.post(change, {**form, "slug": "another", "text": "Two puffs."}).status_code == 302
    assert KnowledgeDraft.objects.using("support").get(pk=draft.pk).slug == slug
    assert Knowledge.objects.get(slug=slug).text == "Smoke the hive."
    assert "changed since" in desk.get(LIST).content.decode()
    act(desk, "publish", draft)
    assert Knowledge.objects.get(slug=slug).text == "Two puffs."
    act(desk, "withdraw", draft)
    assert not Knowledge.objects.filter(slug=slug).exists()
    told = (
        LogEntry.objects.using("support")
        .filter(object_id=str(draft.pk))
        .values_list("change_message", flat=True)
    )
    assert sum(each in {"Published.", "Withdrawn."} for each in told) == 3
