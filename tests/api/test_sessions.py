"""Lists and transcripts of sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from memberintel.tenancy.context import scope
from sessions import indexer
from sessions.models import Session
from tests.api.calls import bearer, browser, made_token, problem
from tests.api.conftest import Wrap
from tests.conftest import Person
from tests.sessions.conftest import say
from tests.wrapups.stage import ADVICE, PLAN, talked

DAY = datetime(2026, 7, 21, 16, 5, tzinfo=UTC)


def listed(client: Client, **query: Any) -> list[UUID]:
    response = client.get("/api/v1/sessions/", query)
    assert response.status_code == 200, response.content
    return [UUID(item["id"]) for item in response.json()["items"]]


def paged(client: Client, path: str) -> list[UUID]:
    """Everything, page after page."""
    found: list[UUID] = []
    following: str | None = path
    while following:
        page = client.get(following).json()
        found += [UUID(item["id"]) for item in page["items"]]
        following = page["next"]
    return found


def test_each_session_appears_once_while_paging_also_at_the_same_moment(alice: Person) -> None:
    made = [talked(alice.scope, PLAN, at=DAY + timedelta(hours=n // 3)) for n in range(8)]
    client = browser(alice)
    for limit in (1, 3, 7, 8, 100):
        assert paged(client, f"/api/v1/sessions/?limit={limit}") == sorted(made, reverse=True)


def test_one_that_is_touched_meanwhile_costs_nobody_else_a_place(alice: Person) -> None:
    made = sorted(talked(alice.scope, PLAN, at=DAY + timedelta(hours=n)) for n in range(5))
    client = browser(alice)
    first = client.get("/api/v1/sessions/?limit=2").json()
    with scope(alice.scope):
        Session.objects.filter(id=made[0]).update(last_activity_at=DAY + timedelta(days=1))
    assert paged(client, first["next"]) == [made[2], made[1]]


def test_filters_stay_on_the_next_page(alice: Person) -> None:
    made = [talked(alice.scope, PLAN, at=DAY + timedelta(days=n)) for n in range(6)]
    since, until = "2026-07-22T16:05:00Z", "2026-07-25T16:05:00Z"
    found = paged(browser(alice), f"/api/v1/sessions/?limit=1&since={since}&until={until}")
    assert found == made[3:0:-1]


def test_open_and_archived(alice: Person) -> None:
    closed, archived = talked(alice.scope, PLAN, at=DAY), talked(alice.scope, PLAN, at=DAY)
    with scope(alice.scope):
        Session.objects.filter(id=archived).update(archived_at=DAY)
    standing = say(alice, PLAN, "key-12345678").session
    client = browser(alice)
    assert listed(client) == [standing, closed]
    assert listed(client, open="true") == [standing]
    assert listed(client, open="false") == [closed]
    assert listed(client, archived="true") == [archived]


def test_colleagues_and_strangers_see_none_of_it(alice: Person, bob: Person, charlie: Person) -> None:
    talked(alice.scope, PLAN)
    assert listed(browser(bob)) == listed(browser(charlie)) == []
    assert listed(bearer(made_token(bob, "read").secret)) == []


def test_a_session_with_all_that_was_said(alice: Person) -> None:
    session = talked(alice.scope, PLAN, ADVICE, at=DAY)
    told = browser(alice).get(f"/api/v1/sessions/{session}/").json()
    assert (told["open"], told["close_reason"], told["messages"]) == (False, "ended", 1)
    assert told["started_at"] == "2026-07-21T16:05:00Z"
    assert told["running"] is None
    assert [item["kind"] for item in told["items"]] == ["opened", "message", "answer", "closed"]
    assert told["items"][1]["text"] == PLAN
    assert told["items"][2]["text"] == ADVICE
    assert told["items"][2]["state"] == "complete"


def test_a_running_answer_is_named_with_its_address(alice: Person) -> None:
    standing = say(alice, PLAN, "key-12345678")
    told = browser(alice).get(f"/api/v1/sessions/{standing.session}/").json()
    assert told["running"]["turn"] == str(standing.turn.id)
    assert told["running"]["stream"].endswith(f"/stream/?attempt=1&since={standing.seq}")
    assert told["items"][-1]["state"] == "running"


def test_a_damaged_title_is_null_and_the_rest_is_there(alice: Person) -> None:
    standing = say(alice, PLAN, "key-12345678").session
    with scope(alice.scope), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sessions SET title = set_byte(title, 20, get_byte(title, 20) # 255) WHERE id = %s",
            [standing],
        )
    client = browser(alice)
    assert client.get("/api/v1/sessions/").json()["items"][0]["title"] is None
    assert client.get(f"/api/v1/sessions/{standing}/").json()["title"] is None


@pytest.mark.parametrize("count", [1, 12])
def test_a_list_costs_the_same_number_of_queries_at_any_length(
    count: int, alice: Person, django_assert_max_num_queries: Any
) -> None:
    for _ in range(count):
        talked(alice.scope, PLAN, at=DAY)
    client = browser(alice)
    with django_assert_max_num_queries(12):
        assert len(listed(client)) == count


def test_what_became_of_a_sessions_wrap_up(alice: Person, wrapped: Wrap) -> None:
    client, done = browser(alice), wrapped(alice)
    told = client.get(f"/api/v1/sessions/{done}/wrap-up/").json()
    assert told["state"] == "done"
    assert told["wrap_up"]["session"] == str(done)
    queued, standing = talked(alice.scope, PLAN), say(alice, PLAN, "key-12345678").session
    for session, state in ((queued, "queued"), (standing, "open")):
        told = client.get(f"/api/v1/sessions/{session}/wrap-up/").json()
        assert told == {"state": state, "wrap_up": None}


def test_free_is_told_which_plans_have_wrap_ups(charlie: Person) -> None:
    session = talked(charlie.scope, PLAN)
    for path in ("/api/v1/wrap-ups/", f"/api/v1/sessions/{session}/wrap-up/"):
        for client in (browser(charlie), bearer(made_token(charlie, "wrapups").secret)):
            response = client.get(path)
            assert response.status_code == 403
            told = problem(response)
            assert (told["type"], told["plan"]) == ("/problems/not-in-plan", "Free")
            assert "Pro" in told["plans"]
            assert "Pro" in told["detail"]


def test_search_finds_what_was_said(alice: Person, bob: Person, wrapped: Wrap) -> None:
    session = wrapped(alice)
    with scope(alice.scope):
        indexer.index(session)
    word = PLAN.split()[2]
    found = browser(alice).get("/api/v1/search/", {"q": word}).json()
    assert str(session) in [hit["session"] for hit in found["items"]]
    assert word.lower().strip(".,") in found["items"][0]["snippet"].lower()
    assert browser(bob).get("/api/v1/search/", {"q": word}).json() == {"items": [], "total": 0}
    assert browser(alice).get("/api/v1/search/", {"q": "?!"}).json()["items"] == []
    assert browser(alice).get("/api/v1/search/").status_code == 400
