"""Every page of the desk as staff see it: no text, no count, few queries, its own way in and out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memberintel.tenancy.desk import Edit, Look
from memberintel.usage.models import ChargeCounter
from memberintel.vault import cipher, keyring
from tests.admin.scene import PLANTED, Scene, plant
from tests.admin.staff import make_staff, sign_in
from tests.conftest import make_person

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
each_page = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
OTHERS = ("/admin/", "/admin/usage/ledgerentry/sums/", "/admin/search/?s=session")


@pytest.fixture(scope="module")
def desk(django_db_blocker: Any) -> Client:
    with django_db_blocker.unblock():
        return sign_in(make_staff())


@pytest.fixture(scope="module")
def scene(django_db_blocker: Any) -> Scene:
    with django_db_blocker.unblock():
        return plant(make_person(tier="pro", name="planted"))


def page_of(model: Any) -> Look:
    """The page of a model."""
    return cast(Look, admin.site._registry[model])


def list_url(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def row_url(model: Any, scene: Scene, page: str = "change") -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    return reverse(name, args=[scene.key(model)])


def every_url(scene: Scene) -> list[str]:
    """Each page there is, also narrowed to the planted customer, and each row's history."""
    who = f"tenant_id={scene.person.scope.tenant_id}"
    urls = [*OTHERS]
    for model in MODELS:
        urls += [list_url(model), f"{list_url(model)}?q={scene.person.user.email[:20]}"]
        urls += [f"{list_url(model)}?{who}"] if "tenant_id" in page_of(model).owners else []
        urls += [row_url(model, scene), row_url(model, scene, "history")]
    return urls


@contextmanager
def queries() -> Iterator[list[str]]:
    """The statements of all logins."""
    found: list[str] = []
    with (
        CaptureQueriesContext(connections["default"]) as one,
        CaptureQueriesContext(connections["support"]) as two,
    ):
        yield found
    found += [query["sql"] for query in (*one.captured_queries, *two.captured_queries)]


def test_pages_hold_no_text_and_open_none(
    desk: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the desk reached for a key")

    keyring.cache.clear()
    monkeypatch.setattr(keyring, "key_of", refuse)
    monkeypatch.setattr(cipher.Opener, "open", refuse)
    for url in every_url(scene):
        response = desk.get(url)
        assert response.status_code == 200, url
        assert PLANTED not in response.content.decode(), url


def test_the_planted_customer_is_on_the_pages(desk: Client, scene: Scene) -> None:
    """Lest the test above look at empty ones."""
    for model in MODELS:
        if "tenant_id" in page_of(model).owners and model is not ChargeCounter:  # the whole account's
            page = desk.get(f"{list_url(model)}?tenant_id={scene.person.scope.tenant_id}").content.decode()
            assert scene.person.user.email in page, model._meta.label
            assert str(scene.key(model)) in page


def test_no_sealed_column_leaves_the_database(desk: Client, scene: Scene) -> None:
    from memberintel.vault.fields import SealedField

    with queries() as statements:
        for url in every_url(scene):
            desk.get(url)
    for model in MODELS:
        for field in model._meta.fields:
            if isinstance(field, SealedField):
                column = f'"{model._meta.db_table}"."{field.column}"'
                assert not [sql for sql in statements if column in sql], column


@each_page
def test_a_list_counts_nothing_and_asks_little(desk: Client, scene: Scene, model: Any) -> None:
    desk.get(list_url(model))  # content types and the like are read once
    for query in ("", f"?q={scene.person.user.email}", f"?q={uuid4()}"):
        with queries() as statements:
            assert desk.get(list_url(model) + query).status_code == 200
        assert len(statements) <= 12, statements
        assert not [sql for sql in statements if re.search(r"\bcount\s*\(", sql, re.IGNORECASE)]


@each_page
def test_nothing_is_added_or_deleted(desk: Client, scene: Scene, model: Any) -> None:
    written_here = model._meta.label in {"brain.KnowledgeDraft", "wrapups.LegalReview"}  # no customer's
    assert desk.get(f"{list_url(model)}add/").status_code == (200 if written_here else 403)
    assert desk.get(row_url(model, scene, "delete")).status_code == 403
    assert desk.post(row_url(model, scene, "delete"), {"post": "yes"}).status_code == 403
    posted = {
        "action": "delete_selected",
        "_selected_action": str(scene.key(model)),
        "index": 0,
        "post": "yes",
    }
    desk.post(list_url(model), posted)
    assert model._default_manager.using("support").filter(pk=scene.key(model)).exists()


@each_page
def test_an_unknown_row_leads_back(desk: Client, model: Any) -> None:
    for key in (uuid4(), "nonsense", "%00"):
        response = desk.get(f"{list_url(model)}{key}/change/")
        assert response.status_code in (302, 404)


def test_pages_of_packages_are_left_out() -> None:
    assert {type(page).__name__ for page in admin.site._registry.values()} == {
        *("AuditDesk", "RequestDesk"),
        *("TierDesk", "TenantDesk", "UserDesk", "SessionDesk", "DocumentDesk"),
        *("SessionLogDesk", "ClosingJobDesk", "RunDesk", "LedgerDesk"),
        *("ChargeCounterDesk", "MonthlyReportDesk"),
        *("MemoryDesk", "KnowledgeDesk", "VersionDesk", "JournalDesk"),
        "LegalReviewDesk",
    }


@each_page
def test_only_pages_without_content_can_be_changed(model: Any) -> None:
    if isinstance(page_of(model), Edit):
        assert model._meta.label in {"tenancy.Tier", "tenancy.Tenant"}


def test_an_odd_filter_is_refused(desk: Client) -> None:
    """What no index serves would walk the table."""
    for query in ("?customer_id=" + str(uuid4()), "?model=x", "?title__contains=x"):
        assert desk.get(f"/admin/chat/session/{query}").status_code == 400, query


def test_the_log_of_the_desk_holds_no_text(scene: Scene) -> None:
    for entry in LogEntry.objects.all():
        assert PLANTED not in f"{entry.object_repr} {entry.change_message}"


def test_the_desk_has_a_policy_of_its_own(desk: Client) -> None:
    own = desk.get("/admin/")["Content-Security-Policy"]
    assert "'unsafe-eval'" in own
    strict = desk.get("/accounts/2fa/")["Content-Security-Policy"]
    assert "unsafe" not in strict
    for policy in (own, strict):
        assert not re.search(r"https?:|\*", policy)  # nothing from elsewhere


def test_a_page_for_a_visitor_from_nowhere_names_no_other_host(desk: Client, scene: Scene) -> None:
    for url in every_url(scene):
        page = desk.get(url).content.decode()
        assert not re.findall(r'(?:src|href|action)="(?:https?:)?//[^"]*"', page), url


def test_without_its_login_the_desk_says_what_to_set(desk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memberintel.admin.configured", lambda: False)
    response = desk.get("/admin/")
    assert response.status_code == 503
    assert "DATABASE_URL_SUPPORT" in response.content.decode()
    assert settings.DATABASES["support"]
