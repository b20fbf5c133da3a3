"""Conversations end and their notes are written, by web processes and workers that race, die and lose their queue."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from memberintel.celery import app
from memberintel.lib import clock
from memberintel.tenancy.models import Tenant, Tier
from memberintel.usage.models import Kind, TierBudget
from sessions.domain import events as kinds
from tests.conftest import Person, login_as, make_person
from tests.faults.web import Browser
from tests.faults.world import World, events_named, world
from tests.waiting import until
from tests.wrapups.stage import ANSWER, PLAN
from wrapups import backfill as missed

FINE = {"steps": [{"text": "A good start. Send it on Friday."}]}
NOTES = {"steps": [{"json": ANSWER}]}
SUMMARY = "They plan a discount campaign."
ALL_DONE = {"wrap_up": "done", "journal": "done", "mood": "done"}
TWO_HOURS = timedelta(hours=2)
PASSED_AWAY = (
    "UPDATE sessions SET ended_at = now() - interval '3 hours', leaving_at = now() - interval '3 hours'"
)


@pytest.fixture(scope="module")
def town(django_db_blocker: Any) -> Iterator[World]:
    """Two web processes, of which the second has all the patience for notes, and a worker that does two things at
    once."""
    with (
        django_db_blocker.unblock(),
        world(f"closing_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}") as made,
    ):
        made.variables["LLM_ROUTE_WRAP_UP"] = "scripted:notes"
        made.made.play(FINE, notes=[NOTES])
        begun = [made.made.begin(), made.made.begin(MEMBERINTEL_FAULTS_WAIT="120")]
        made.start_worker(2)
        for web in begun:
            made.made.ready(web)
        yield made


@contextmanager
def notes(town: World, *plays: dict[str, Any]) -> Iterator[None]:
    """While inside, the notes are written like this."""
    town.made.play(FINE, notes=plays)
    try:
        yield
    finally:
        town.made.play(FINE, notes=[NOTES])


def customer(tier: str = "pro", **more: Any) -> Browser:
    return Browser.of(make_person(tier=tier, **more))


def talked(town: World, browser: Browser) -> str:
    """A conversation worth notes, still open."""
    return str(town.say(browser, PLAN)["session"])


def with_budget(kind: Kind, most: int | None) -> Tier:
    """A new tier with so many a month."""
    with login_as("owner"):
        tier = Tier.objects.create(key=f"tier-{uuid4().hex[:8]}", name="Test")
        TierBudget.objects.create(tier=tier, kind=kind, monthly_limit=most)
    return tier


def used(town: World, person: Person, kind: Kind) -> int:
    sql = "SELECT coalesce(sum(used), 0) FROM charge_counters WHERE tenant_id = %s AND kind = %s"
    return town.count(sql, person.scope.tenant_id, kind.value)


def closed_once(town: World, session: str) -> None:
    """The session has one end, and one of each thing that is owed for it."""
    assert events_named(town, session, kinds.SESSION_CLOSED) == 1
    assert town.jobs(session) == ALL_DONE
    assert town.wrap_ups(session) == 1
    assert town.count("SELECT count(*) FROM journal_entries WHERE session_id = %s", session) == 1


def closed_once_written(town: World, *sessions: str) -> None:
    town.until_written(*sessions)
    for session in sessions:
        closed_once(town, session)


def backfill() -> dict[str, int] | None:
    """What the daily run does, by this process."""
    with login_as("worker"):
        return missed.run(later=lambda *_, **__: None, at_once=True)


# --- how a conversation ends -----------------------------------------------------------------------------


def test_sweep_goodbye_customer_and_next_message_at_once_end_a_conversation_once(town: World) -> None:
    people = [customer(name="racer") for _ in range(4)]
    with ThreadPoolExecutor(16) as pool:
        sessions = list(pool.map(lambda browser: talked(town, browser), people))
        town.change(f"{PASSED_AWAY} WHERE id = ANY(%s::uuid[])", sessions)
        acts: list[Future[Any]] = [
            pool.submit(town.send, "sessions.tasks.sweep", idle=idle) for idle in (True, False, True)
        ]
        for number, (browser, session) in enumerate(zip(people, sessions, strict=True)):
            place = f"/api/v1/sessions/{session}"
            for which, web in enumerate(town.made.started):
                acts.append(pool.submit(browser.post, web, f"{place}/leaving/"))
                if number % 2 == which:
                    acts.append(pool.submit(browser.post, web, f"{place}/end/"))
            if number < 2:
                acts.append(pool.submit(town.say, browser, "One more thing about it.", number))
        answers = [act.result() for act in acts]
    assert {answer.status_code for answer in answers if hasattr(answer, "status_code")} == {200, 204}
    town.until_written(*sessions)
    for session in sessions:
        closed_once(town, session)


def test_at_two_hours_of_silence_it_is_over_whether_or_not_the_sweep_came(town: World) -> None:
    now = clock.now().replace(microsecond=0)
    silences = [TWO_HOURS + timedelta(seconds=seconds) for seconds in (-1, 0, 1)]
    first: list[tuple[timedelta, Browser, Browser, str, str]] = []
    for silence in silences:
        with town.time_is(now - silence):
            early, late = customer(name="early"), customer(name="late")
            first.append((silence, early, late, talked(town, early), talked(town, late)))
    with town.time_is(now):
        before = [town.say(early, "And what about prices?") for _, early, *_ in first]
        town.send("sessions.tasks.sweep")
        over = [late for silence, *_, late in first if silence >= TWO_HOURS]
        until(lambda: all(events_named(town, session, kinds.SESSION_CLOSED) for session in over))
        after = [town.say(late, "And what about prices?") for *_, late, _, _ in first]
    for (silence, _, _, *sessions), *said in zip(first, before, after, strict=True):
        for session, answer in zip(sessions, said, strict=True):
            if silence < TWO_HOURS:
                assert (answer["session"], answer["opened"]) == (session, False)
                assert town.jobs(session) == {}
                continue
            assert answer["opened"]
            row = "SELECT continues::text FROM sessions WHERE id = %s"
            assert town.rows(row, answer["session"]) == [(session,)]
            reason = "SELECT close_reason FROM sessions WHERE id = %s"
            assert town.rows(reason, session) == [("idle",)]
            town.until_written(session)
            closed_once(town, session)


# --- while notes are written -----------------------------------------------------------------------------


def test_who_comes_back_while_the_notes_are_written_is_met_with_what_was_said(town: World) -> None:
    patient, quick = customer(name="patient"), customer(name="quick")
    with notes(town, {"steps": [{"json": ANSWER, "delay": 0.5}]}):
        session = talked(town, patient)
        town.end(patient, session)
        town.say(patient, "Where were we?", 1)
        assert SUMMARY in town.made.sent("fault")[-1]
        closed_once_written(town, session)
    with town.shut() as gate, notes(town, {"steps": [{"json": ANSWER, "gate": gate}]}):
        session = talked(town, quick)
        town.end(quick, session)
        following = town.say(quick, f"Where were we? {PLAN}", 0)
        told = town.made.sent("fault")[-1]
        assert SUMMARY not in told
        assert "notes not final" in told.lower()
        assert "20 % discount campaign" in told
        assert town.wrap_ups(session) == 0
        town.open()
        town.end(quick, following["session"])
        closed_once_written(town, session, following["session"])


def test_a_conversation_deleted_while_its_notes_are_written_gets_none_and_costs_nothing(town: World) -> None:
    browser = customer(name="deleter")
    asked = len(town.made.sent("notes"))
    with town.shut() as gate, notes(town, {"steps": [{"json": ANSWER, "gate": gate}]}):
        session = talked(town, browser)
        town.end(browser, session)
        until(lambda: len(town.made.sent("notes")) > asked)
        with browser.client(town.made.started[1]) as client:
            assert client.delete(f"/api/v1/sessions/{session}/").status_code == 204
        town.open()
        called = "SELECT count(*) FROM ledger WHERE session = %s AND purpose = 'wrap_up'"
        until(lambda: town.count(called, session))  # the model has answered, to nobody any more
    following = customer(name="next")
    other = talked(town, following)
    town.end(following, other)
    closed_once_written(town, other)  # and the worker goes on
    assert set(town.jobs(session).values()) == {"deleted"}
    assert town.wrap_ups(session) == 0
    assert events_named(town, session, kinds.USER_MESSAGE) == 0
    assert used(town, browser.person, Kind.WRAP_UP) == 0


def test_a_worker_killed_between_the_answer_and_the_commit_leaves_one_wrap_up(town: World) -> None:
    """The model has answered and was paid; what it said must be written by the next worker, and charged once."""
    browser = customer(name="unlucky")
    session = talked(town, browser)
    waits = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        " AND query LIKE %s"
    )
    with town.connect() as keeper, keeper.transaction():
        keeper.execute("LOCK TABLE session_logs IN SHARE MODE")  # nobody can write one meanwhile
        town.end(browser, session)
        until(lambda: town.count(waits, '%INSERT INTO "session_logs"%'))
        town.started[-1].kill()
    assert town.wrap_ups(session) == 0
    town.start_worker(2)
    town.expire_leases()
    counts = backfill()
    assert counts is not None
    assert counts["written"] >= 1
    closed_once_written(town, session)
    assert used(town, browser.person, Kind.WRAP_UP) == 1


def test_the_backfill_beside_live_closing_writes_nothing_twice_and_misses_nothing(town: World) -> None:
    people = [customer(name="busy") for _ in range(12)]
    fine, waits = {"steps": [{"json": ANSWER}]}, {"steps": [{"json": ANSWER, "gate": str(town.made.gate)}]}
    with ThreadPoolExecutor(6) as pool, town.shut(), notes(town, fine, waits):
        sessions = list(pool.map(lambda browser: talked(town, browser), people))
        ends = pool.map(lambda at: town.end(people[at], sessions[at], at % 2), range(len(people)))
        until(lambda: any(town.wrap_ups(session) for session in sessions))
        until(
            lambda: sum(bool(town.jobs(session)) for session in sessions) > 4
        )  # two times two are in hand at most
        counts = [backfill(), backfill()]
        town.open()
        list(ends)
        assert any(each and each["written"] for each in counts), counts
        closed_once_written(town, *sessions)
    asked = "SELECT count(*) FROM ledger WHERE session = ANY(%s::uuid[]) AND purpose = 'wrap_up'"
    assert town.count(asked, sessions) == len(sessions)


def test_a_queue_that_is_down_for_a_day_loses_nothing(town: World) -> None:
    """Whose notes are being written, who ends a conversation without it, and who only falls silent: all get theirs."""
    assert app.conf.broker_connection_max_retries is None  # for its 100 tries take less than an hour
    people = [customer(name=name) for name in ("written", "ending", "silent")]
    sessions = [talked(town, browser) for browser in people]
    asked = len(town.made.sent("notes"))
    with town.shut() as gate, notes(town, {"steps": [{"json": ANSWER, "gate": gate}]}):
        town.end(people[0], sessions[0])
        until(lambda: len(town.made.sent("notes")) > asked)
        town.stop_redis()  # the worker has it in hand
        town.end(people[1], sessions[1])
        town.open()
        until(lambda: town.wrap_ups(sessions[0]))
    assert set(town.jobs(sessions[1]).values()) == {"queued"}
    sessions.append(talked(town, people[1]))  # the chat goes on without the queue
    with town.time_is(clock.now() + timedelta(days=1)):
        town.start_redis()
        town.send("sessions.tasks.sweep")
        town.send("memberintel.usage.tasks.daily")
        closed_once_written(town, *sessions)  # by the worker that ran all the while


# --- what the model says ---------------------------------------------------------------------------------

GHOSTS = {
    **ANSWER,
    "decisions": [{"text": "Sell the club", "messages": [7, 99]}],
    "open_items": [{"text": "Fire the cook", "messages": []}],
}
ENDLESS = {**ANSWER, "summary": "word " * 10_000}
ABROAD = {
    **ANSWER,
    "summary": "Sie planen eine Rabattaktion für das Jahresabo und haben noch nicht mit ihr begonnen.",
}
NOTHING = [
    {"text": "I would rather not answer in JSON."},
    {"text": json.dumps(ANSWER)[:-40]},
    {"text": ""},
]


ERROR = "SELECT last_error FROM closing_jobs WHERE session_id = %s AND kind = 'wrap_up'"
KEPT = (
    "SELECT word_count <= 400, shortened, dropped, jsonb_array_length(open_item_ids) FROM session_logs"
    " WHERE session_id = %s"
)


CALLS = "SELECT count(*) FROM ledger WHERE session = %s AND purpose = 'wrap_up'"


def test_whatever_the_model_says_notes_are_whole_or_there_are_none(town: World) -> None:
    failing: list[str] = []
    for step in NOTHING:
        with _ended_with(town, {"steps": [step]}) as session:
            assert town.rows(ERROR, session) == [("invalid_output",)]
            assert town.wrap_ups(session) == 0
        failing.append(session)
    for answer, calls, kept in (
        (GHOSTS, 1, (False, 2, 0)),
        (ENDLESS, 3, (True, 0, 0)),
        (ABROAD, 2, (False, 0, 1)),
    ):
        with _ended_with(town, {"steps": [{"json": answer}]}) as session:
            assert town.count(CALLS, session) == calls
            assert town.rows(KEPT, session) == [(True, *kept)]
    backfill()
    closed_once_written(town, *failing)


@contextmanager
def _ended_with(town: World, play: dict[str, Any]) -> Iterator[str]:
    """A conversation that has ended, whose notes the worker has tried to write once, with that for an answer; which is
    what it gets as long as we are inside, since it tries again by itself."""
    browser = customer(name="heard")
    session = talked(town, browser)
    with notes(town, play):
        town.end(browser, session)
        until(lambda: town.rows(ERROR, session) != [("",)] or town.wrap_ups(session))
        yield session


# --- budgets ---------------------------------------------------------------------------------------------


def test_another_tier_in_the_middle_of_the_month_pays_for_what_found_no_budget(town: World) -> None:
    tier = with_budget(Kind.WRAP_UP, 1)
    browser = customer(tier.key, name="upgrader")
    first = talked(town, browser)
    town.end(browser, first)
    town.until_written(first)
    second = talked(town, browser)
    town.end(browser, second)
    until(lambda: town.jobs(second)["wrap_up"] == "unfunded")
    assert town.wrap_ups(second) == 0
    town.change("UPDATE tenants SET tier_id = 'pro' WHERE id = %s", browser.person.scope.tenant_id)
    backfill()
    closed_once_written(town, first, second)
    assert used(town, browser.person, Kind.WRAP_UP) == 2
    town.change("UPDATE tenants SET tier_id = %s WHERE id = %s", tier.key, browser.person.scope.tenant_id)
    third = talked(town, browser)
    town.end(browser, third)
    until(lambda: town.jobs(third)["wrap_up"] == "unfunded")


def test_a_hundred_messages_at_once_on_a_budget_of_ten_are_ten_answers(town: World) -> None:
    tenant = Tenant.objects.create(name="The crowd", tier=with_budget(Kind.CHAT_TURN, 10))
    crowd = [customer(tier="", tenant=tenant, owner=False, name="one") for _ in range(100)]
    with ThreadPoolExecutor(20) as pool:
        places = enumerate(crowd)
        answers = list(pool.map(lambda each: each[1].say(town.made.started[each[0] % 2], PLAN), places))
    assert sorted(answer.status_code for answer in answers) == [201] * 10 + [402] * 90
    asked = "SELECT count(*) FROM session_events WHERE tenant_id = %s AND kind = %s"
    assert town.count(asked, tenant.id, kinds.USER_MESSAGE) == 10
    assert used(town, crowd[0].person, Kind.CHAT_TURN) == 10
