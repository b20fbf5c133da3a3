"""Staff record the legal review, turn pooling on, read groups, and write articles in their own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from brain.models import Knowledge, KnowledgeDraft
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import SYSTEM, scope
from memberintel.tenancy.desk import SUPPORT
from memberintel.tenancy.models import User
from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person, login_as
from tests.wrapups.pooling.conftest import forget_others, groups, lawyers, member, run
from wrapups.models import LegalReview, PooledSupport
from wrapups.pooling import choices, legal, queries

__all__ = ["lawyers", "member"]

Member = Callable[..., Person]
LIST = "/admin/wrapups/legalreview/"
POOL = f"{LIST}pool/"
WHY = "The lawyers answered on the first of December"
SHARED = "Offer the yearly plan to members before the launch"
OWN = (
    "Several owners tell their people about paying once a year some weeks ahead of opening the doors. That gives"
    " everybody time to think, and spares a rush on the last day."
)


@pytest.fixture(autouse=True)
def _calm(settings: LazySettings) -> None:
    settings.POOLING_SHARE, settings.POOLING_EVERY_DAYS = 1.0, 0
    forget_others()


@pytest.fixture(scope="module")
def lead(django_db_blocker: Any) -> User:
    with django_db_blocker.unblock():
        return make_staff(role="lead")


@pytest.fixture(scope="module")
def desk(lead: User, django_db_blocker: Any) -> Client:
    with django_db_blocker.unblock():
        return sign_in(lead)


@pytest.fixture
def slug() -> Iterator[str]:
    """Of an article that is gone afterwards."""
    made = f"pooled-{uuid4().hex[:8]}"
    yield made
    with login_as("owner"):
        KnowledgeDraft.objects.filter(slug=made).delete()
        Knowledge.objects.filter(slug=made).delete()


@pytest.fixture
def group(lawyers: LegalReview, member: Member) -> UUID:
    """A group of six tenants that a review has found."""
    for _ in range(6):
        member(SHARED)
    run()
    (found,) = queries.shown()
    return found.id


def act(desk: Client, name: str, row: LegalReview) -> Any:
    form = {"action": name, "_selected_action": str(row.pk), "index": 0, "confirmed": 1, "reason": WHY}
    return desk.post(LIST, form)


def done(by: User) -> list[str]:
    """What the audit of the product as a whole holds of that person, oldest first."""
    with scope(SYSTEM):
        rows = AuditRow.objects.filter(actor=by.pk).exclude(what__startswith="user")
        return list(rows.order_by("id").values_list("action", flat=True))


def text(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", response.content.decode()).split())


def test_a_lead_records_the_review_turns_it_on_and_takes_it_back(desk: Client, lead: User) -> None:
    assert "Nothing is compared until a legal review is recorded" in text(desk.get(POOL))
    before = len(done(lead))
    form = {"reference": "Opinion of 1 December, kept with the contracts", "ground": "consent"}
    assert desk.post(f"{LIST}add/", form).status_code == 302
    row = choices.review()
    assert row is not None
    assert (row.recorded_by, row.reference, row.running) == (lead.pk, form["reference"], False)
    assert "nobody has turned pooling on" in text(desk.get(POOL))
    act(desk, "turn_on", row)
    assert choices.running()
    assert "Nothing that enough accounts share" in text(desk.get(POOL))
    act(desk, "turn_off", row)
    assert not choices.running()
    act(desk, "take_back", row)
    assert choices.review() is None
    act(desk, "turn_on", row)
    assert "This review is over" in text(desk.get(LIST))
    assert not choices.running()
    assert done(lead)[before:] == ["legal_review_recorded", "turn_on", "turn_off", "take_back"]


@pytest.mark.parametrize("what", ["turn_on", "turn_off", "take_back"])
def test_a_review_that_a_colleague_ends_at_the_same_moment_is_said_to_be_over(
    desk: Client, lawyers: LegalReview, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def meanwhile(*args: Any) -> None:
        legal.take_back(lawyers, using=SUPPORT)

    monkeypatch.setattr("wrapups.pooling.desk.record", meanwhile)
    act(desk, what, lawyers)
    assert "This review is over" in text(desk.get(LIST))


def test_what_was_recorded_is_not_changed(desk: Client, lawyers: LegalReview) -> None:
    desk.post(f"{LIST}{lawyers.pk}/change/", {"reference": "Another", "ground": "notice"})
    lawyers.refresh_from_db()
    assert (lawyers.reference.startswith("Opinion"), lawyers.ground) == (True, "consent")


@pytest.mark.parametrize("role", ["support", "engineer", ""])
def test_others_of_the_staff_have_no_way_to_it(group: UUID, role: str) -> None:
    client = sign_in(make_staff(superuser=False, role=role))
    assert client.get(POOL).status_code == 403
    for path in (f"{POOL}{group}/", f"{LIST}add/"):
        assert (client.get(path).status_code, client.post(path, {}).status_code) == (403, 403), path
    row = choices.review()
    assert row is not None
    assert act(client, "turn_off", row).status_code == 403
    assert choices.running()
    assert "Pooled review" not in client.get("/admin/").content.decode()


def test_a_customer_does_not_know_of_it(group: UUID, alice: Person) -> None:
    client = Client()
    client.force_login(alice.user, backend="django.contrib.auth.backends.ModelBackend")
    for path in (POOL, f"{POOL}{group}/"):
        assert client.get(path).status_code == 404


def test_a_group_is_read_without_accounts_and_numbers_and_that_is_on_record(
    desk: Client, lead: User, group: UUID
) -> None:
    before = done(lead)
    page = desk.get(POOL).content.decode()
    (found,) = queries.shown()
    assert found.phrases
    assert all(f"… {phrase} …" in page for phrase in found.phrases)
    with login_as("owner"):
        tenants = set(User.objects.filter(email__startswith="member-").values_list("tenant_id", flat=True))
    assert not [tenant for tenant in tenants if str(tenant) in page]
    assert "at least 5 accounts" in page
    assert done(lead) == [*before, "pool_read"]


def test_staff_write_the_article_and_publish_it_like_any_other(
    desk: Client, lead: User, group: UUID, slug: str
) -> None:
    address = f"{POOL}{group}/"
    empty = desk.get(address).content.decode()
    assert not re.search(r'<textarea[^>]*name="text"[^>]*>\s*[^<\s]', empty), "it begins empty"
    form = {"title": "Ahead of the doors", "topic": "Launching", "slug": slug, "text": OWN}
    answer = desk.post(address, form)
    draft = KnowledgeDraft.objects.using("support").get(slug=slug)
    assert answer["Location"] == reverse("admin:brain_knowledgedraft_change", args=[draft.pk])
    assert (draft.text, draft.published_at) == (OWN, None)
    assert not Knowledge.objects.filter(slug=slug).exists()
    assert done(lead)[-1] == "insight_written"
    assert "The article written of it" in text(desk.get(POOL))
    assert "article with this slug" in text(desk.post(address, form))
    chosen = {"action": "publish", "_selected_action": str(draft.pk), "index": 0}
    desk.post("/admin/brain/knowledgedraft/", chosen)
    assert Knowledge.objects.get(slug=slug).text == OWN


def test_what_staff_read_is_not_an_article(desk: Client, group: UUID, slug: str) -> None:
    (found,) = queries.shown()
    copied = ". ".join(found.phrases).capitalize()
    answer = desk.post(
        f"{POOL}{group}/", {"title": "x", "topic": "y", "slug": slug, "text": f"Owners say: {copied}"}
    )
    assert (answer.status_code, "words of your own" in text(answer)) == (400, True)
    assert not KnowledgeDraft.objects.using("support").filter(slug=slug).exists()


def test_a_group_that_is_gone_meanwhile_takes_no_article(
    desk: Client, lawyers: LegalReview, member: Member, slug: str
) -> None:
    people = [member(SHARED) for _ in range(6)]
    run()
    (found,) = queries.shown()
    for who in people[:2]:
        with scope(who.scope):
            choices.choose(by=who.user.pk, takes_part=False)
    assert found.phrases[0] not in desk.get(POOL).content.decode()
    form = {"title": "Ahead", "topic": "Launching", "slug": slug, "text": OWN}
    assert desk.post(f"{POOL}{found.id}/", form).status_code == 404
    assert not KnowledgeDraft.objects.using("support").filter(slug=slug).exists()


def test_a_tenant_that_leaves_stands_behind_nothing_that_was_published_either(
    desk: Client, lawyers: LegalReview, member: Member, slug: str
) -> None:
    people = [member(SHARED) for _ in range(6)]
    run()
    (found,) = queries.shown()
    desk.post(f"{POOL}{found.id}/", {"title": "Ahead", "topic": "Launching", "slug": slug, "text": OWN})
    draft = KnowledgeDraft.objects.using("support").get(slug=slug)
    desk.post(
        "/admin/brain/knowledgedraft/", {"action": "publish", "_selected_action": str(draft.pk), "index": 0}
    )
    for who in people:
        with scope(who.scope):
            choices.choose(by=who.user.pk, takes_part=False)
    assert queries.shown() == []
    with login_as("owner"):
        tenants = [who.scope.tenant_id for who in people]
        assert PooledSupport.objects.filter(tenant_id__in=tenants).count() == 0
    assert Knowledge.objects.filter(slug=slug).exists(), "what staff wrote of it is theirs"


def test_turning_it_off_empties_the_review(desk: Client, group: UUID) -> None:
    row = choices.review()
    assert row is not None
    act(desk, "turn_off", row)
    assert groups() == 0
    assert desk.get(f"{POOL}{group}/").status_code == 404
