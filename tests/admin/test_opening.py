"""The pages on which staff open and edit a customer's content, step by step."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import QueryDict
from django.test import Client, override_settings
from django.urls import reverse

from brain import queries as brain
from brain.models import Document, MemoryEntry
from memberintel.lib.ids import uuid7
from memberintel.privacy import openable
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from tests.admin.scene import PLANTED, Scene, plant
from tests.admin.staff import make_staff, sign_in
from tests.brain.heartbeat.stage import days_of, site_of
from tests.conftest import make_person
from tests.tenancy.databases import connected_as
from wrapups import actions, forms
from wrapups import queries as wrapups

WHY = "They wrote that their documents look garbled"
KINDS = ("soul", "bible", "session", "wrap_up", "request", "memories", "memory", "journal", "heartbeat")


@pytest.fixture(scope="module")
def lead(django_db_blocker: Any) -> Client:
    with django_db_blocker.unblock():
        return sign_in(make_staff(role="lead"))


@pytest.fixture
def scene() -> Scene:
    return plant(make_person(tier="pro", name="planted"))


def key(scene: Scene, kind: str) -> Any:
    ids = {
        "session": scene.rows["chat.Session"],
        "wrap_up": scene.rows["wrapups.SessionLog"],
        "request": scene.rows["privacy.StaffRequest"],
        "memory": scene.rows["brain.MemoryEntry"],
    }
    return ids.get(kind, scene.person.user.pk)


def address(scene: Scene, kind: str, page: str = "open") -> str:
    return reverse(f"admin:{page}", args=[kind, key(scene, kind)])


def opened(scene: Scene) -> list[str]:
    with scope(scene.person.scope):
        return list(AuditRow.objects.filter(action="opened").order_by("id").values_list("what", flat=True))


def give_reason(client: Client, scene: Scene, kind: str = "soul") -> Any:
    return client.post(address(scene, kind), {"reason": WHY}, follow=True)


def test_every_kind_is_shown_once_a_reason_is_given(lead: Client, scene: Scene) -> None:
    assert set(KINDS) <= openable.kinds().keys()
    for kind in KINDS:
        before = lead.get(address(scene, kind)).content.decode()
        assert "Why do you need to look?" in before, kind
        assert PLANTED not in before
    assert opened(scene) == []
    give_reason(lead, scene)
    for kind in KINDS:
        page = lead.get(address(scene, kind))
        assert page.status_code == 200
        assert "no-store" in page["Cache-Control"]
        assert "Each look is on record" in page.content.decode()
        assert (PLANTED in page.content.decode()) is (kind not in {"bible", "heartbeat"}), kind
    assert opened(scene) == [f"{kind} {key(scene, kind)}" for kind in ("soul", *KINDS)]


@pytest.mark.parametrize("before", ["0001-01-01", "9999-12-31", "yesterday", "\0"])
def test_the_journal_before_a_day_that_is_none_is_shown_from_its_end(
    lead: Client, scene: Scene, before: str
) -> None:
    give_reason(lead, scene)
    assert PLANTED in lead.get(address(scene, "journal"), {"before": before}).content.decode()


def test_closing_shuts_it_again(lead: Client, scene: Scene) -> None:
    give_reason(lead, scene)
    lead.post(address(scene, "soul"), {"act": "close"})
    assert PLANTED not in lead.get(address(scene, "soul")).content.decode()


def test_when_the_time_is_over_the_reason_is_asked_again(lead: Client, scene: Scene) -> None:
    with override_settings(ACCESS_GRANT_SECONDS=0):
        page = give_reason(lead, scene).content.decode()
    assert PLANTED not in page
    assert "Why do you need to look?" in page


def test_a_word_is_no_reason(lead: Client, scene: Scene) -> None:
    refused = lead.post(address(scene, "soul"), {"reason": "because"})
    assert refused.status_code == 400
    assert "because" in refused.content.decode()
    assert opened(scene) == []


def test_what_is_not_there_is_not_found(lead: Client, scene: Scene) -> None:
    for kind in KINDS:
        assert lead.get(reverse("admin:open", args=[kind, uuid4()])).status_code == 404
    assert lead.get(reverse("admin:open", args=["keys", scene.person.user.pk])).status_code == 404


def test_a_row_that_does_not_open_is_named_and_the_look_is_on_record(lead: Client, scene: Scene) -> None:
    damage = "UPDATE documents SET text = decode('01ff', 'hex') WHERE id = %s"
    with connected_as("owner"), connection.cursor() as cursor:
        cursor.execute(damage, [scene.key(Document)])
    page = give_reason(lead, scene).content.decode()
    assert "cannot be opened" in page
    assert "Edit on their behalf" not in page
    assert opened(scene) == [f"soul {scene.person.user.pk}"]


def test_a_document_is_edited_on_the_customers_behalf(lead: Client, scene: Scene) -> None:
    give_reason(lead, scene)
    page = lead.get(address(scene, "soul", "open_edit")).content.decode()
    assert PLANTED in page
    posted = {"body": "Be kind.", "base_version": "1", "reason": WHY}
    done = lead.post(address(scene, "soul", "open_edit"), posted, follow=True).content.decode()
    assert "Saved as version 2, by support" in done
    with scope(scene.person.scope):
        found = brain.document("soul")
        assert (found.text, found.updated_by) == ("Be kind.", "staff")
        row = AuditRow.objects.get(action="edited")
        assert (row.reason, row.role) == (WHY, "lead")


@pytest.mark.parametrize("base", ["0", "7", "", "-1", "x"])
def test_an_edit_of_what_no_longer_stands_is_not_saved(lead: Client, scene: Scene, base: str) -> None:
    give_reason(lead, scene)
    posted = {"body": "My own text", "base_version": base, "reason": WHY}
    refused = lead.post(address(scene, "soul", "open_edit"), posted)
    assert refused.status_code == 409
    page = refused.content.decode()
    assert "My own text" in page
    assert PLANTED in page  # what stands, to compare
    with scope(scene.person.scope):
        assert brain.document("soul").version == 1
        assert not AuditRow.objects.filter(action="edited").exists()


def test_an_edit_needs_a_reason_of_its_own(lead: Client, scene: Scene) -> None:
    give_reason(lead, scene)
    refused = lead.post(address(scene, "soul", "open_edit"), {"body": "My own text", "base_version": "1"})
    assert refused.status_code == 400
    assert "My own text" in refused.content.decode()


def test_a_wrap_up_is_edited_and_a_stale_edit_is_not(lead: Client, scene: Scene) -> None:
    give_reason(lead, scene)
    lead.get(address(scene, "wrap_up", "open_edit"))
    posted = {"summary": "We spoke.", "note": "Ask.", "standing": "", "reason": WHY}
    done = lead.post(address(scene, "wrap_up", "open_edit"), posted, follow=True).content.decode()
    assert "Saved, on the customer" in done
    again = lead.post(address(scene, "wrap_up", "open_edit"), posted | {"summary": "Another."})
    assert again.status_code == 409
    with scope(scene.person.scope):
        found = wrapups.get_wrap_up(key(scene, "wrap_up"))
    assert found is not None
    assert (found.summary, found.edited_by_staff) == ("We spoke.", True)
    theirs = Client()
    theirs.force_login(scene.person.user, "django.contrib.auth.backends.ModelBackend")
    for page in ("/wrap-ups/", f"/wrap-ups/{key(scene, 'wrap_up')}/"):
        assert "edited by our support" in theirs.get(page).content.decode()
    with scope(scene.person.scope):
        actions.edit(key(scene, "wrap_up"), forms.read(QueryDict("summary=Mine")), by=scene.person.user.pk)
    assert "edited by you" in theirs.get("/wrap-ups/").content.decode()


def test_an_entry_of_memory_is_edited_and_a_stale_edit_is_not(lead: Client, scene: Scene) -> None:
    give_reason(lead, scene)
    assert PLANTED in lead.get(address(scene, "memory", "open_edit")).content.decode()
    posted = {"text": "Prices stay.", "base_version": "1", "reason": WHY}
    done = lead.post(address(scene, "memory", "open_edit"), posted, follow=True).content.decode()
    assert "Saved as version 2, by support" in done
    again = lead.post(address(scene, "memory", "open_edit"), posted | {"text": "Prices fall."})
    assert again.status_code == 409
    assert "Prices fall." in again.content.decode()
    empty = lead.post(address(scene, "memory", "open_edit"), posted | {"text": " ", "base_version": "2"})
    assert empty.status_code == 400
    with scope(scene.person.scope):
        row = MemoryEntry.objects.get(id=key(scene, "memory"))
        assert (row.text, row.source, row.reason, row.embedder) == ("Prices stay.", "staff", WHY, "")
        assert AuditRow.objects.get(action="edited").what == f"memory {row.id}"


def test_a_file_of_numbers_is_kept_for_the_customer_or_refused_whole(lead: Client, scene: Scene) -> None:
    who, page = scene.person, address(scene, "heartbeat", "open_edit")
    site = site_of(who)

    def send(text: str, to: object = site) -> Any:
        sent = SimpleUploadedFile("numbers.csv", text.encode())
        return lead.post(page, {"site": str(to), "file": sent, "reason": WHY}, follow=True)

    give_reason(lead, scene)
    assert "Kiln &amp; Kin" in lead.get(page).content.decode()
    assert send("day,active_members\n2026-01-31,140\n", uuid7()).status_code == 400
    refused = send("day,active_members\n2026-01-31,many\n")
    assert (refused.status_code, "row 2" in refused.content.decode().lower()) == (400, True)
    assert days_of(who, site, "csv") == {}
    assert "2 days kept" in send("day,active_members\n2026-01-30,139\n2026-01-31,140\n").content.decode()
    assert [each.counts["active_members"] for each in days_of(who, site, "csv").values()] == [139, 140]
    assert "Active members: 140" in lead.get(address(scene, "heartbeat")).content.decode()
    with scope(who.scope):
        assert AuditRow.objects.get(action="edited").what == f"heartbeat {who.user.pk}"


def test_support_opens_and_is_offered_no_edit(scene: Scene) -> None:
    support = sign_in(make_staff(role="support"))
    page = give_reason(support, scene).content.decode()
    assert PLANTED in page
    assert "Edit on their behalf" not in page
    assert support.get(address(scene, "soul", "open_edit")).status_code == 403


def test_an_engineer_opens_nothing(scene: Scene) -> None:
    engineer = sign_in(make_staff(role="engineer"))
    for kind in KINDS:
        assert engineer.get(address(scene, kind)).status_code == 403
        assert engineer.post(address(scene, kind), {"reason": WHY}).status_code == 403
    assert opened(scene) == []


def test_the_pages_of_rows_lead_to_what_is_sealed_in_them(lead: Client, scene: Scene) -> None:
    for model, kind in (("chat_session", "session"), ("wrapups_sessionlog", "wrap_up")):
        page = lead.get(reverse(f"admin:{model}_change", args=[key(scene, kind)])).content.decode()
        assert address(scene, kind) in page
    person = lead.get(reverse("admin:tenancy_user_change", args=[scene.person.user.pk])).content.decode()
    assert address(scene, "soul") in person
