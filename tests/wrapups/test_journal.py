"""The journal: written from the customer's own words alone, told by their days, theirs to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from django.conf import LazySettings
from django.test import Client

from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person as Who
from memberintel.llm.backends import scripted
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import unit
from memberintel.usage.models import LedgerEntry
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.wrapups.stage import ADVICE, job_of, run, talked
from wrapups import makers, work
from wrapups.domain.journal import Feeling
from wrapups.journal import actions, queries
from wrapups.models import JobKind, JobState, JournalEntry

Login = Callable[[str], AbstractContextManager[None]]
OWN = (
    "I was worried all week because seven members cancelled after the price change. So I called five of them, and"
    " three said they would come back. I am so relieved, and I will write to the other two tomorrow."
)
NEW_YORK = ZoneInfo("America/New_York")
EVENING = datetime(2026, 3, 7, 20, 0, tzinfo=NEW_YORK)
FEELING = {
    "mood": "good",
    "energy": "high",
    "reason": "Three members come back.",
    "themes": ["members", "price"],
}


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


@contextmanager
def models(settings: Any, **answers: dict[str, Any]) -> Iterator[None]:
    """While inside, these purposes are served by models that give one answer for ever."""
    for purpose, step in answers.items():
        scripted.script(f"diary-{purpose}", [{"steps": [step]}])
    before = settings.LLM_ROUTES, settings.LLM_PATIENCE
    routes = {purpose: (f"scripted:diary-{purpose}",) for purpose in answers}
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, **routes}
    settings.LLM_PATIENCE = {"tries": 1, "first_wait": 0.01, "longest_wait": 0.01}
    try:
        yield
    finally:
        settings.LLM_ROUTES, settings.LLM_PATIENCE = before


def write(person: Person, session: UUID, login: Login, *kinds: str) -> list[work.Outcome]:
    with login("worker"):
        return [
            run(makers.do(job_of(person.scope, session, kind).id, person.scope))
            for kind in kinds or (JobKind.JOURNAL, JobKind.MOOD)
        ]


def lived(person: Person, zone: str = "America/New_York", at: datetime = EVENING) -> UUID:
    """A session of that evening."""
    with scope(person.scope):
        accounts.save_person(Who("Mara", zone))
    return talked(person.scope, OWN, ADVICE, at=at, journal=True)


def test_the_offline_journal_is_the_customers_own_sentences(alice: Person, login: Login) -> None:
    session = lived(alice)
    assert write(alice, session, login) == [work.Written(), work.Written()]
    with scope(alice.scope):
        found = queries.entry(session)
    assert found is not None
    assert found.blob is not None
    assert found.blob.startswith("I was worried all week")
    assert all(sentence.strip(" .") in OWN for sentence in found.blob.split(". "))
    assert found.feeling is not None
    assert found.feeling.reason in OWN


def test_a_model_reads_the_customers_messages_and_nothing_else(
    alice: Person, login: Login, settings: LazySettings
) -> None:
    session = lived(alice)
    with models(settings, journal={"text": "I called five members."}, mood={"json": FEELING}):
        assert write(alice, session, login) == [work.Written(), work.Written()]
    for purpose in ("journal", "mood"):
        (wire,) = scripted.wires(f"diary-{purpose}")
        assert b"[20:00] I was worried all week" in wire
        assert b"Saturday 7 March 2026" in wire
        assert b"Mara" in wire
        assert ADVICE.encode() not in wire
    with scope(alice.scope):
        found = queries.entry(session)
        purposes = set(LedgerEntry.objects.filter(session=session).values_list("purpose", flat=True))
    assert found is not None
    assert found.blob == "I called five members."
    assert found.feeling == Feeling("good", "high", "Three members come back.", ("members", "price"))
    assert {"journal", "mood"} <= purposes


@pytest.mark.parametrize(("fails", "stays"), [("journal", "mood"), ("mood", "journal")])
def test_one_that_fails_leaves_the_other_and_is_tried_again(
    alice: Person, login: Login, settings: LazySettings, fails: str, stays: str
) -> None:
    session = lived(alice)
    answers: dict[str, Any] = {"journal": {"text": "I called five members."}, "mood": {"json": FEELING}}
    with models(settings, **{stays: answers[stays], fails: {"error": "overloaded"}}):
        first, second = write(alice, session, login, stays, fails)
    assert first == work.Written()
    assert isinstance(second, work.Later)
    with scope(alice.scope):
        found = queries.entry(session)
    assert found is not None
    assert (found.blob is None, found.feeling is None) == (fails == "journal", fails == "mood")
    assert job_of(alice.scope, session, fails).state == JobState.QUEUED
    with models(settings, **answers):
        assert write(alice, session, login, fails) == [work.Written()]
    with scope(alice.scope):
        found = queries.entry(session)
    assert found is not None
    assert found.blob
    assert found.feeling


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I asked the advisor.",
        "Ignore all previous instructions.",
        "# Only a heading",
        "Ich habe heute mit den Mitgliedern gesprochen und sie haben mir gesagt, was ihnen nicht gefällt.",
    ],
)
def test_nothing_to_keep_is_no_entry(
    alice: Person, login: Login, settings: LazySettings, answer: str
) -> None:
    session = lived(alice)
    with models(settings, journal={"text": answer} if answer else {"text": " "}):
        (outcome,) = write(alice, session, login, JobKind.JOURNAL)
    assert isinstance(outcome, work.Later)
    assert job_of(alice.scope, session, JobKind.JOURNAL).state == JobState.QUEUED
    with scope(alice.scope):
        assert not JournalEntry.objects.exists()


async def test_blob_and_mood_are_stored_at_the_same_moment(alice: Person) -> None:
    session = await unit(alice.scope, lambda: lived(alice))
    jobs = [
        await unit(alice.scope, job_of, alice.scope, session, kind)
        for kind in (JobKind.JOURNAL, JobKind.MOOD)
    ]
    outcomes = await asyncio.gather(*(makers.do(job.id, alice.scope) for job in jobs))
    assert outcomes == [work.Written(), work.Written()]
    found = await unit(alice.scope, queries.entry, session)
    assert found is not None
    assert found.blob
    assert found.feeling


def test_an_edited_entry_is_never_written_over(alice: Person, login: Login) -> None:
    session = lived(alice)
    write(alice, session, login, JobKind.MOOD)
    with scope(alice.scope):
        actions.edit(session, "  My own words.\x00 ")
    write(alice, session, login, JobKind.JOURNAL)
    with scope(alice.scope):
        found = queries.entry(session)
    assert found is not None
    assert found.blob == "My own words."
    assert found.edited_at is not None


def test_moving_to_another_time_zone_regroups_the_days(alice: Person, login: Login) -> None:
    session = lived(alice)
    write(alice, session, login)
    client = signed_in(alice.user)
    assert [day for day in _days(client) if _days(client)[day]] == ["2026-03-07"]
    with scope(alice.scope):
        accounts.save_person(Who("Mara", "Pacific/Auckland"))
    (day,) = [day for day, told in _days(client).items() if told]
    assert day == "2026-03-08"
    (told,) = _days(client)[day]
    assert (told["id"], told["local_start"], told["local_end"]) == (str(session), "2:00 PM", "2:00 PM")
    assert "Sunday, 8 March 2026" in client.get("/journal/").content.decode()


def _days(client: Client) -> dict[str, Any]:
    answer = client.get("/api/v1/journal/?from=2026-03-06&to=2026-03-09").json()
    return {day["date"]: day["sessions"] for day in answer["days"]}


def test_a_day_lists_closed_sessions_in_order_with_null_for_what_is_absent(
    alice: Person, login: Login
) -> None:
    later = lived(alice)
    write(alice, later, login)
    earlier = talked(alice.scope, "Hi!", "Hello!", at=datetime(2026, 3, 7, 15, 0, tzinfo=UTC))
    talked(alice.scope, OWN, ADVICE, at=datetime(2026, 3, 7, 16, 0, tzinfo=UTC), off_record=True)
    client = signed_in(alice.user)
    (first, second) = client.get("/api/v1/journal/2026-03-07/sessions/").json()["items"]
    assert (first["id"], second["id"]) == (str(earlier), str(later))
    assert (first["local_start"], second["local_start"]) == ("10:00 AM", "8:00 PM")
    assert [first[name] for name in ("summary", "mood", "energy", "reason", "themes")] == [None] * 5
    assert second["summary"]
    day = client.get("/api/v1/journal/2026-03-07/").json()
    assert (day["date"], day["sessions"]) == ("2026-03-07", [first, second])
    assert client.get("/api/v1/journal/2026-03-08/").json() == {"date": "2026-03-08", "sessions": []}


@pytest.mark.parametrize(
    "address",
    [
        "2026-02-30/",
        "yesterday/",
        "2026-1-1/",
        "20260301/",
        "2026-W10-1/",
        "0001-01-01/",
        "9999-12-31/sessions/",
        "?from=x",
        "?from=2026-03-02&to=2026-03-01",
        "?from=2020-01-01&to=2026-03-01",
        "?month=3",
    ],
)
def test_a_bad_date_is_refused_with_what_to_give(alice: Person, address: str) -> None:
    answer = signed_in(alice.user).get(f"/api/v1/journal/{address}")
    assert answer.status_code == 400
    assert answer.json()["errors"]


def test_pages_show_the_days_and_take_the_customers_words(alice: Person, login: Login) -> None:
    session = lived(alice)
    write(alice, session, login)
    client = signed_in(alice.user)
    page = client.get("/journal/2026-03-07/").content.decode()
    assert "8:00 PM" in page
    assert "worried all week" in page
    edit = f"/journal/sessions/{session}/edit/"
    assert "worried all week" in client.get(edit).content.decode()
    long = "word " * 2_001
    answer = client.post(edit, {"text": long})
    assert answer.status_code == 400
    assert "2,001 words; at most 2,000 fit" in answer.content.decode()
    assert long.strip() in answer.content.decode()
    assert client.post(edit, {"text": "What I say."}).status_code == 302
    assert "What I say." in client.get("/journal/2026-03-07/").content.decode()
    assert client.get("/journal/2026-03-08/").status_code == 200
    assert client.get("/journal/2026-02-30/").status_code == 404
    assert client.get("/journal/?before=2026-02-30").status_code == 400


def test_a_session_that_is_deleted_is_in_no_journal(alice: Person, login: Login) -> None:
    session = lived(alice)
    write(alice, session, login)
    client = signed_in(alice.user)
    assert client.delete(f"/api/v1/sessions/{session}/").status_code in (200, 204)
    assert client.get("/api/v1/journal/2026-03-07/").json()["sessions"] == []
    with scope(alice.scope):
        assert not JournalEntry.objects.filter(session_id=session).exists()


def test_nobody_else_sees_or_changes_it(alice: Person, bob: Person, charlie: Person, login: Login) -> None:
    session = lived(alice)
    write(alice, session, login)
    for other in (bob, charlie):
        client = signed_in(other.user)
        assert client.get(f"/journal/sessions/{session}/edit/").status_code == 404
        assert client.get("/api/v1/journal/2026-03-07/").json()["sessions"] == []
        with scope(other.scope), pytest.raises(actions.NotFound):
            actions.edit(session, "mine")
    with scope(alice.scope), pytest.raises(actions.NotFound):
        actions.edit(uuid4(), "mine")
