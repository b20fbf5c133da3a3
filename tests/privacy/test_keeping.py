"""Owners say how long content is kept, on a page and over the API; what is older then goes, and nothing unasked."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from memberintel.privacy import audit, keeping, retention
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import Tenant, Tier
from tests.api.calls import browser, problem, send
from tests.conftest import Person, login_as
from tests.privacy.test_retention import Counted, events, keep_everything, old_session

PAGE, API = "/privacy/retention/", "/api/v1/privacy/retention/"
PLAN: dict[str, str] = dict.fromkeys(retention.KINDS, "plan")
NOTHING: dict[str, int | None] = dict.fromkeys(retention.KINDS)


@pytest.fixture(autouse=True)
def _everything_is_kept_again(settings: LazySettings) -> Iterator[None]:
    """A run looks at every account there is."""
    settings.SECURE_SSL_REDIRECT = False
    keep_everything()
    yield
    keep_everything()


def said(who: Person) -> dict[str, int | None]:
    with scope(who.scope):
        return {str(kind): days for kind, days in keeping.said().items()}


def on_record(who: Person) -> list[tuple[Any, str]]:
    with scope(who.scope):
        rows = AuditRow.objects.filter(action="retention_set").order_by("id")
        return [(row.actor, row.what) for row in rows]


def words(answer: Any) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.content.decode())).split())


def hidden(answer: Any) -> dict[str, list[str]]:
    """What the question sends back, as its page holds it."""
    found: dict[str, list[str]] = {}
    for field in re.findall(r'<input type="hidden"[^>]*>', answer.content.decode()):
        name, value = (re.search(f' {each}="([^"]*)"', field) for each in ("name", "value"))
        if name and name[1] != "csrfmiddlewaretoken":
            found.setdefault(name[1], []).append(value[1] if value else "")
    return found


def purge() -> None:
    with login_as("worker"):
        retention.step(Counted())


def test_an_owner_is_asked_before_anything_would_go_and_then_the_next_run_takes_it(
    alice: Person, bob: Person, charlie: Person
) -> None:
    sessions = [(who, old_session(who)) for who in (alice, bob, charlie)]
    client = browser(alice)
    form = PLAN | {"events": "days", "events_days": "30", "journal": "good"}
    question = client.post(PAGE, form)
    assert "Conversations, word for word older than 30 days" in words(question)
    assert "cannot be brought back" in words(question)
    assert (said(alice), on_record(alice)) == (NOTHING, [])
    purge()
    assert [events(who, session) for who, session in sessions] == [4, 4, 4]

    answer = client.post(PAGE, hidden(question))
    assert (answer.status_code, answer["Location"]) == (302, "/privacy/")
    assert said(alice) == NOTHING | {"events": 30, "journal": 0}
    assert on_record(alice) == [(alice.user.pk, "events 30, journal 0")]
    assert "Kept for 30 days after the last message." in words(client.get("/privacy/"))
    purge()
    assert [events(who, session) for who, session in sessions] == [0, 0, 4]


def test_what_was_agreed_to_is_no_yes_to_less(alice: Person) -> None:
    client = browser(alice)
    question = client.post(PAGE, PLAN | {"memory": "days", "memory_days": "400"})
    agreed = hidden(question) | {"memory_days": ["4"]}
    assert "MEMORY older than 4 days" in words(client.post(PAGE, agreed))
    assert said(alice) == NOTHING


def test_back_to_a_plan_that_keeps_less_is_asked_too(alice: Person) -> None:
    tier = Tier.objects.filter(pk=alice.user.tenant.tier_id) if alice.user.tenant else Tier.objects.none()
    Tenant.objects.filter(pk=alice.scope.tenant_id).update(keep_journal=0)
    with login_as("owner"):
        tier.update(keep_journal=60)
    try:
        client = browser(alice)
        assert "As the plan says: for 60 days" in words(client.get(PAGE))
        question = client.post(PAGE, PLAN)
        assert "Journal older than 60 days" in words(question)
        assert said(alice) == NOTHING | {"journal": 0}
        client.post(PAGE, hidden(question))
        assert (said(alice), on_record(alice)) == (NOTHING, [(alice.user.pk, "journal as tier")])
    finally:
        with login_as("owner"):
            tier.update(keep_journal=None)


def test_longer_needs_no_question_and_the_same_again_no_row(alice: Person) -> None:
    Tenant.objects.filter(pk=alice.scope.tenant_id).update(keep_events=30, keep_memory=90)
    client = browser(alice)
    for _ in range(2):
        form = PLAN | {"events": "days", "events_days": "31", "memory": "good", "memory_days": "x"}
        assert client.post(PAGE, form)["Location"] == "/privacy/"
    assert said(alice) == NOTHING | {"events": 31, "memory": 0}
    assert on_record(alice) == [(alice.user.pk, "events 31, memory 0")]
    page = client.get(PAGE).content.decode()
    assert re.search(r'name="events_days"\s+value="31"', page)
    assert re.search(r'name="memory"\s+value="good"\s+checked', page)


@pytest.mark.parametrize("days", ["", "0", "-1", "32768", "9" * 5000, "many", "1.5", "1e3"])
def test_days_that_are_none_are_refused_on_the_page(days: str, alice: Person) -> None:
    form = PLAN | {"wrap_ups": "days", "wrap_ups_days": days, "agreed": f"wrap_ups {days}"}
    answer = browser(alice).post(PAGE, form)
    assert "Say for how many days, from 1 to 32,767." in words(answer)
    assert said(alice) == NOTHING


@pytest.mark.parametrize("form", [{}, PLAN | {"events": "ever"}, {"events": "good"}])
def test_half_a_form_changes_nothing(form: dict[str, str], alice: Person) -> None:
    answer = browser(alice).post(PAGE, form)
    assert (answer.status_code, said(alice)) == (200, NOTHING)
    assert 'role="alert"' in answer.content.decode()


def test_a_colleague_reads_how_long_and_changes_nothing(alice: Person, bob: Person) -> None:
    client = browser(bob)
    page = client.get("/privacy/")
    assert "An owner of the account decides about it." in words(page)
    assert PAGE not in page.content.decode()
    assert PAGE in browser(alice).get("/privacy/").content.decode()
    for answer in (client.get(PAGE), client.post(PAGE, PLAN | {"events": "good"})):
        assert answer.status_code == 403
        assert alice.user.email in answer.content.decode()
    refused = send(client, "PUT", API, NOTHING | {"events": 1})
    assert (refused.status_code, problem(refused)["type"]) == (403, "/problems/owners-only")
    assert client.get(API).json() == {"kept": NOTHING, "said": NOTHING}
    assert said(alice) == NOTHING


def test_nobody_is_asked_who_they_are(alice: Person) -> None:
    assert Client().post(PAGE, PLAN)["Location"].startswith("/accounts/login/")
    assert send(Client(), "PUT", API, NOTHING).status_code == 401


def test_a_stranger_says_it_of_their_own_account(alice: Person, charlie: Person) -> None:
    told = send(browser(charlie), "PUT", API, NOTHING | {"events": 10, "memory": 0})
    assert told.json() == {"kept": NOTHING | {"events": 10}, "said": NOTHING | {"events": 10, "memory": 0}}
    assert on_record(charlie) == [(charlie.user.pk, "events 10, memory 0")]
    back = send(browser(charlie), "PUT", API, NOTHING)
    assert back.json() == {"kept": NOTHING, "said": NOTHING}
    assert on_record(charlie)[1:] == [(charlie.user.pk, "events as tier, memory as tier")]
    assert (said(alice), on_record(alice)) == (NOTHING, [])


@pytest.mark.parametrize("days", [-1, 32_768, 2**70, "30", "many", 1.5, True, [30]])
def test_days_that_are_none_are_refused_by_the_api(days: Any, alice: Person) -> None:
    answer = send(browser(alice), "PUT", API, NOTHING | {"journal": days})
    assert answer.status_code == 400
    assert [fault["field"] for fault in problem(answer)["errors"]] == ["journal"]
    assert said(alice) == NOTHING


def test_the_api_wants_every_kind_and_no_other(alice: Person) -> None:
    client = browser(alice)
    for given, field in (({"events": 1}, "memory"), (NOTHING | {"sites": 1}, "sites")):
        answer = send(client, "PUT", API, given)
        assert answer.status_code == 400
        assert field in [fault["field"] for fault in problem(answer)["errors"]]
    most = send(client, "PUT", API, NOTHING | {"events": keeping.MOST})
    assert most.json()["kept"]["events"] == keeping.MOST


def test_what_cannot_go_on_record_is_not_kept(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError

    client = browser(alice)
    monkeypatch.setattr(audit, "record", fail)
    assert send(client, "PUT", API, NOTHING | {"events": 1}).status_code == 500
    assert said(alice) == NOTHING


def test_the_bound_is_that_of_the_desk() -> None:
    for kind in retention.KINDS:
        field: Any = Tenant._meta.get_field(f"keep_{kind}")
        assert {validator.limit_value for validator in field.validators} == {0, keeping.MOST}
