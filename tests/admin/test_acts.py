"""What staff can do: retry owed work in its owner's scope, change a tier, let people in or not."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from memberintel.lib import clock
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import Tenant, Tier, User
from tests.admin.scene import Scene, plant
from tests.admin.staff import make_staff, sign_in
from tests.conftest import Person
from wrapups import tasks
from wrapups.models import ClosingJob, JobState

WHY = "The customer asked for it by telephone"


@pytest.fixture
def staff() -> User:
    return make_staff()


@pytest.fixture
def desk(staff: User) -> Client:
    return sign_in(staff)


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The jobs that were put on the queue."""
    found: list[UUID] = []
    monkeypatch.setattr(tasks, "nudge", lambda jobs, scope, **more: found.extend(jobs))
    return found


@pytest.fixture
def scene(alice: Person, nudged: list[UUID]) -> Scene:
    planted = plant(alice)
    nudged.clear()
    return planted


def retry(desk: Client, *jobs: UUID) -> Any:
    posted = {"action": "retry", "_selected_action": [str(job) for job in jobs], "index": 0}
    posted |= {"reason": WHY}
    return desk.post("/admin/wrapups/closingjob/", posted, follow=True)


def job_of(scene: Scene) -> ClosingJob:
    with scope(scene.person.scope):
        return ClosingJob.objects.get(id=scene.key(ClosingJob))


def lines_about(key: Any) -> list[str]:
    return list(LogEntry.objects.filter(object_id=str(key)).values_list("change_message", flat=True))


def test_a_failed_job_is_put_back_and_nudged(desk: Client, scene: Scene, nudged: list[UUID]) -> None:
    page = retry(desk, scene.key(ClosingJob)).content.decode()
    assert "1 job is on the queue again" in page
    job = job_of(scene)
    assert (job.state, job.daily_tries, job.attempt) == (JobState.QUEUED, 0, 5)  # the fence stays
    assert nudged == [job.id]
    assert lines_about(job.id) == ["Tried again."]


def test_the_button_is_on_the_jobs_own_page(desk: Client, scene: Scene) -> None:
    page = desk.get(f"/admin/wrapups/closingjob/{scene.key(ClosingJob)}/change/").content.decode()
    assert "Try again now" in page


@pytest.mark.parametrize("state", [JobState.DONE, JobState.DELETED, JobState.TRIVIAL, JobState.OFF_RECORD])
def test_finished_work_is_not_done_again(
    desk: Client, scene: Scene, nudged: list[UUID], state: JobState
) -> None:
    with scope(scene.person.scope):
        ClosingJob.objects.update(state=state)
    assert "Nothing to do" in retry(desk, scene.key(ClosingJob)).content.decode()
    assert job_of(scene).state == state
    assert nudged == []
    assert lines_about(scene.key(ClosingJob)) == []


def test_a_job_in_hand_is_left_alone(desk: Client, scene: Scene, nudged: list[UUID]) -> None:
    with scope(scene.person.scope):
        ClosingJob.objects.update(lease_until=clock.now() + timedelta(seconds=20))
    retry(desk, scene.key(ClosingJob))
    assert job_of(scene).state == JobState.FAILED
    assert nudged == []


def test_a_tier_is_changed_and_written_down(desk: Client, charlie: Person) -> None:
    tenant = charlie.user.tenant_id
    desk.post(f"/admin/tenancy/tenant/{tenant}/change/", {"tier": "pro", "name": "Taken over", "reason": WHY})
    found = Tenant.objects.get(id=tenant)
    assert found.tier_id == "pro"
    assert found.name == "charlie's site"  # what is shown to be read is not written
    assert len(lines_about(tenant)) == 1


def test_what_a_tier_includes_is_edited(desk: Client) -> None:
    before = Tier.objects.get(key="business")
    form = {
        "name": before.name,
        "wrap_up_pages": "on",
        "wrap_ups_injected": 5,
        "memory_cap": 100,
        "reason": WHY,
    }
    form |= {"budgets-TOTAL_FORMS": 0, "budgets-INITIAL_FORMS": 0}
    desk.post("/admin/tenancy/tier/business/change/", form)
    assert Tier.objects.get(key="business").wrap_ups_injected == 5
    desk.post("/admin/tenancy/tier/business/change/", {**form, "wrap_ups_injected": before.wrap_ups_injected})
    refused = desk.post("/admin/tenancy/tier/business/change/", {**form, "wrap_ups_injected": -1})
    assert refused.status_code == 200
    assert Tier.objects.get(key="business").wrap_ups_injected == before.wrap_ups_injected


def test_how_long_an_account_is_kept_is_set_by_a_lead_with_a_reason(charlie: Person) -> None:
    page = f"/admin/tenancy/tenant/{charlie.scope.tenant_id}/change/"
    form = {"tier": "free", "keep_events": 90, "keep_wrap_ups": 0, "reason": WHY}
    sign_in(make_staff(role="support")).post(page, form)
    assert Tenant.objects.get(id=charlie.scope.tenant_id).keep_events is None
    lead = make_staff(role="lead")
    desk = sign_in(lead)
    assert desk.post(page, form | {"keep_events": -1}).status_code == 200
    assert desk.post(page, form).status_code == 302
    found = Tenant.objects.get(id=charlie.scope.tenant_id)
    assert (found.keep_events, found.keep_wrap_ups, found.keep_journal) == (90, 0, None)
    with scope(charlie.scope):
        noted = AuditRow.objects.get(what=f"tenant {found.pk}")
        assert (noted.action, noted.actor, noted.reason) == ("changed", lead.pk, WHY)
        Tenant.objects.filter(pk=found.pk).update(keep_events=None)  # a run looks at every account there is


def switch(desk: Client, action: str, user: User) -> str:
    posted = {"action": action, "_selected_action": str(user.pk), "index": 0, "reason": WHY}
    page: str = desk.post("/admin/tenancy/user/", posted, follow=True).content.decode()
    return page


def test_a_person_is_deactivated_and_let_in_again(desk: Client, alice: Person) -> None:
    theirs = Client()
    theirs.force_login(alice.user, "django.contrib.auth.backends.ModelBackend")
    assert theirs.get("/settings/").status_code == 200
    switch(desk, "deactivate", alice.user)
    assert theirs.get("/settings/").status_code == 302  # at once, not at the next sign-in
    switch(desk, "activate", alice.user)
    assert User.objects.get(pk=alice.user.pk).is_active
    assert lines_about(alice.user.pk) == ["Activated.", "Deactivated."]


def test_nobody_locks_themselves_out(desk: Client, staff: User) -> None:
    assert "only another administrator" in switch(desk, "deactivate", staff)
    assert User.objects.get(pk=staff.pk).is_active


def test_staff_without_a_permission_see_and_do_nothing_of_it(alice: Person) -> None:
    clerk = make_staff(superuser=False)
    desk = sign_in(clerk)
    page = desk.get("/admin/").content.decode()
    assert "Failed wrap-ups" not in page
    assert "Spend in" not in page
    assert desk.get("/admin/tenancy/user/").status_code == 403
    assert desk.get("/admin/usage/ledgerentry/sums/").status_code == 403
    _permit(clerk, "view_user")
    assert alice.user.email in desk.get(f"/admin/tenancy/user/?q={alice.user.email}").content.decode()
    switch(desk, "deactivate", alice.user)
    assert User.objects.get(pk=alice.user.pk).is_active


def _permit(user: User, codename: str) -> None:
    """Over the login that may: a web process hands out no rights."""
    permission = Permission.objects.get(codename=codename)
    through = User.user_permissions.through
    through.objects.using("support").create(user_id=user.pk, permission_id=permission.pk)


def test_the_history_tells_who_did_what(desk: Client, staff: User, charlie: Person) -> None:
    tenant = charlie.user.tenant_id
    desk.post(f"/admin/tenancy/tenant/{tenant}/change/", {"tier": "business", "reason": WHY})
    page = desk.get(f"/admin/tenancy/tenant/{tenant}/history/").content.decode()
    assert staff.email in page
    entry = LogEntry.objects.get(object_id=str(tenant))
    assert json.loads(entry.change_message) == [{"changed": {"fields": ["Tier"]}}]


def test_an_act_is_confirmed_with_a_reason_before_anything_is_done(desk: Client, alice: Person) -> None:
    posted = {"action": "deactivate", "_selected_action": str(alice.user.pk), "index": 0}
    for reason, status in (({}, 200), ({"confirmed": "1", "reason": "  no  "}, 400)):
        asked = desk.post("/admin/tenancy/user/", posted | reason)
        assert asked.status_code == status
        assert alice.user.email in asked.content.decode()
        assert "Why?" in asked.content.decode()
    assert User.objects.get(pk=alice.user.pk).is_active
    assert audited(alice) == []


def test_every_act_is_in_the_audit_with_its_reason(
    desk: Client, staff: User, scene: Scene, nudged: list[UUID]
) -> None:
    alice = scene.person
    retry(desk, scene.key(ClosingJob))
    desk.post(f"/admin/tenancy/tenant/{alice.scope.tenant_id}/change/", {"tier": "business", "reason": WHY})
    switch(desk, "deactivate", alice.user)
    assert audited(alice) == [
        ("retry", f"closingjob {scene.key(ClosingJob)}", staff.pk, WHY),
        ("changed", f"tenant {alice.scope.tenant_id}", staff.pk, WHY),
        ("deactivate", f"user {alice.user.pk}", staff.pk, WHY),
    ]


def test_a_change_without_a_reason_is_not_made(desk: Client, charlie: Person) -> None:
    answer = desk.post(f"/admin/tenancy/tenant/{charlie.scope.tenant_id}/change/", {"tier": "pro"})
    assert answer.status_code == 200
    assert Tenant.objects.get(id=charlie.scope.tenant_id).tier_id == "free"
    assert audited(charlie) == []


def audited(person: Person) -> list[tuple[str, str, Any, Any]]:
    with scope(person.scope):
        rows = AuditRow.objects.filter(role="administrator").order_by("id")
        return [(row.action, row.what, row.actor, row.reason) for row in rows]
