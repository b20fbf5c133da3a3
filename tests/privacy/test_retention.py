"""What is older than an account keeps it goes, and nothing else: by kind, by account, whatever happens meanwhile."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections

from brain import actions as brain
from brain.domain.prompt import RenderedPart
from brain.memory.actions import Choice, New, keep
from brain.models import DocumentVersion, MemoryEntry, MemoryVersion, PromptPart
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.privacy import participants, retention
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import Tenant, Tier
from memberintel.usage.models import Run
from memberintel.usage.runs import Recorded
from memberintel.vault import keyring
from memberintel.vault.errors import WrongKey
from sessions import indexer, search
from sessions.models import EraseReason, Session, SessionEvent, SessionTerms
from tests.conftest import Person, login_as, make_person
from tests.wrapups.stage import PLAN, job_of, talked, wrap_ups
from wrapups.models import ClosingJob, JobKind, JobState, JournalEntry, SessionLog

OLD = timedelta(days=40)


class Counted(Recorded):
    """A run that is no row."""

    def __init__(self) -> None:
        super().__init__(uuid7())


@pytest.fixture(autouse=True)
def everything_is_kept_elsewhere() -> Iterator[None]:
    """A run looks at every account there is, also at those of other tests."""
    keep_everything()
    yield
    keep_everything()


def keep_everything() -> None:
    Tenant.objects.update(**{f"keep_{kind}": None for kind in retention.KINDS})


@pytest.fixture
def dora() -> Person:
    """Owner of a Pro account of her own."""
    return make_person(tier="pro", name="dora")


def keeps(who: Person, **days: int | None) -> None:
    Tenant.objects.filter(pk=who.scope.tenant_id).update(
        **{f"keep_{kind}": number for kind, number in days.items()}
    )


def purged() -> Counter[str]:
    """What a run counts."""
    counted = Counted()
    with login_as("worker"):
        retention.step(counted)
    return counted.counts


def old_session(who: Person, *, age: timedelta = OLD) -> UUID:
    """A session with notes and a place in the journal, all of them done, its words in the search index."""
    at = clock.now() - age
    session = talked(who.scope, PLAN, "That is a good start.", at=at)
    with scope(who.scope):
        Session.objects.filter(id=session).update(closed_at=at)
        JournalEntry.objects.create(
            session_id=session, session_started_at=at, session_last_activity_at=at, blob="A day."
        )
        indexer.index(session)
    with login_as("worker"), scope(who.scope):  # nobody else may write one
        _wrap_up(session, at)
    return session


def _wrap_up(session: UUID, at: datetime) -> None:
    ClosingJob.objects.filter(session_id=session, kind=JobKind.WRAP_UP).update(state=JobState.DONE)
    SessionLog.objects.create(
        session_id=session,
        session_started_at=at,
        session_last_activity_at=at,
        summary="They plan a discount.",
        decisions=[],
        open_items=[],
        new_context=[],
        next_session_note="",
        model="offline:extractive",
        prompt_version="test-1",
        word_count=4,
    )


def events(who: Person, session: UUID) -> int:
    with scope(who.scope):
        return SessionEvent.objects.filter(session_id=session).count()


def entries(who: Person) -> int:
    with scope(who.scope):
        return JournalEntry.objects.count()


def test_by_default_everything_is_kept() -> None:
    for tier in Tier.objects.all():
        assert set(retention.days_of(Tenant(tier=tier)).values()) == {None}


@pytest.mark.parametrize(
    ("own", "default", "kept"), [(None, None, None), (None, 90, 90), (0, 90, None), (30, 90, 30), (30, 0, 30)]
)
def test_what_the_account_says_goes_before_its_tier(
    own: int | None, default: int | None, kept: int | None
) -> None:
    tenant = Tenant(tier=Tier(key="some", keep_journal=default), keep_journal=own)
    assert retention.days_of(tenant)["journal"] == kept


def test_old_words_go_and_leave_a_shell_with_the_notes(alice: Person, dora: Person) -> None:
    old, new, hers = old_session(alice), talked(alice.scope, PLAN), old_session(dora)
    keeps(alice, events=30)
    keeps(dora, events=60)
    counts = purged()
    assert (counts["sessions"], counts["events"], counts["wrap_ups"]) == (1, 4, 0)
    assert (events(alice, old), events(alice, new) > 0, events(dora, hers)) == (0, True, 4)
    with scope(alice.scope):
        shell = Session.objects.get(id=old)
        assert (shell.erase_reason, shell.title, shell.is_deleted) == (EraseReason.RETENTION, None, False)
        assert not SessionTerms.objects.filter(session_id=old).exists()
        assert old not in {hit.session for hit in search.search("discount")}
    assert len(wrap_ups(alice.scope, old)) == 1
    assert entries(alice) == 1
    with scope(dora.scope):
        assert len(search.search("discount")) > 0


def test_open_sessions_and_those_with_owed_work_are_kept(alice: Person) -> None:
    owed, failed, open_one = (talked(alice.scope, PLAN, at=clock.now() - OLD) for _ in range(3))
    old = clock.now() - OLD
    with scope(alice.scope):
        Session.objects.all().update(closed_at=old)
        Session.objects.filter(id=open_one).update(closed_at=None, close_reason=None, last_activity_at=old)
        ClosingJob.objects.filter(session_id=failed).update(state=JobState.FAILED, daily_tries=2)
    keeps(alice, events=30)
    assert purged().total() == 0
    with scope(alice.scope):  # given up: nobody comes back to it by himself
        ClosingJob.objects.filter(session_id=failed).update(state=JobState.FAILED, daily_tries=5)
    assert purged()["sessions"] == 1
    assert (events(alice, owed) > 0, events(alice, open_one) > 0, events(alice, failed)) == (True, True, 0)
    assert job_of(alice.scope, failed).state == JobState.EXPIRED


def test_notes_and_journal_have_days_of_their_own(alice: Person, bob: Person) -> None:
    old = old_session(alice)
    his = old_session(bob, age=timedelta(days=20))
    with scope(alice.scope):
        mood = ClosingJob.objects.filter(session_id=old, kind=JobKind.MOOD)
        mood.update(state=JobState.QUEUED)  # being made just now: what comes of it is void
    keeps(alice, wrap_ups=30, journal=30)
    counts = purged()
    assert (counts["wrap_ups"], counts["journal"], counts["events"]) == (1, 1, 0)
    assert {job_of(alice.scope, old, kind).state for kind in JobKind} == {JobState.EXPIRED, JobState.DELETED}
    assert job_of(alice.scope, old, JobKind.MOOD).state == JobState.EXPIRED
    assert (wrap_ups(alice.scope, old), entries(alice), events(alice, old)) == ([], 0, 4)
    assert (len(wrap_ups(bob.scope, his)), entries(bob)) == (1, 1)


def save(text: str, base: int, at: datetime, by: Any = "advisor") -> UUID:
    """A version of SOUL as of that time, with its copy in a prompt."""
    brain.save_document(kind="soul", body=text, base_version=base, by=by, reason="x")
    row = DocumentVersion.objects.get(version=base + 1)
    brain.store_parts([RenderedPart("soul", text, "soul", row.id)])
    return row.id


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets the clock of the process so many days back."""
    real = clock.now

    def back(days: int) -> datetime:
        moment = real() - timedelta(days=days)
        monkeypatch.setattr(clock, "now", lambda: moment)
        return moment

    yield back
    monkeypatch.setattr(clock, "now", real)


def test_memory_goes_with_what_it_and_the_documents_said(alice: Person, at: Any) -> None:
    with scope(alice.scope):
        moment = at(50)
        old = keep(New("The studio opens at nine.", "x", "customer"), None, Choice(keep_both=True))
        changed = keep(New("Prices rise in May.", "x", "customer"), None, Choice(keep_both=True))
        parts = [RenderedPart("memory", row.text, "memory", row.id) for row in (old, changed)]
        brain.store_parts(parts)
        save("One", 0, moment, by="customer")
        save("Two", 1, at(45), by="customer")
        keep(New("Prices fall in May.", "x", "customer"), None, Choice(replace=changed.id, keep_both=True))
        save("Three", 2, at(35))
        save("Four", 3, at(5))
        keep(New("Prices stay in May.", "x", "customer"), None, Choice(replace=changed.id, keep_both=True))
        brain.store_parts([RenderedPart("memory", "Prices stay in May.", "memory", changed.id)])
        at(0)
    keeps(alice, memory=30)
    told = {tenant: counts for tenant, counts in _past() if tenant == alice.scope.tenant_id}
    counts = purged()
    assert counts == {"memories": 1, "memory_versions": 1, "document_versions": 1}
    assert told == {alice.scope.tenant_id: counts}
    with scope(alice.scope):
        assert [row.text for row in MemoryEntry.objects.all()] == ["Prices stay in May."]
        assert [row.text for row in MemoryVersion.objects.all()] == ["Prices fall in May."]
        # "Two" is old as well, but the last that a person saved: what the advisor wrote since is measured by it.
        assert [row.text for row in DocumentVersion.objects.order_by("version")] == ["Two", "Three", "Four"]
        said = {row.text for row in PromptPart.objects.filter(removed_on=None)}
        assert said == {"Two", "Three", "Four", "Prices stay in May."}


def _past() -> list[tuple[UUID, dict[str, int]]]:
    with login_as("worker"):
        return [
            (tenant, {name: number for name, number in counts.items() if number})
            for tenant, counts in retention.past()
        ]


def test_versions_are_not_expired_before_a_day_has_passed(alice: Person) -> None:
    with (
        login_as("worker"),
        scope(alice.scope),
        pytest.raises(DatabaseError, match="so old"),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT app.expire_document_versions(clock_timestamp(), 10)")


def test_who_decides_during_a_run_that_more_is_kept_keeps_what_is_left(alice: Person, bob: Person) -> None:
    class Decided(Counted):
        """The first thing that is deleted is the last."""

        def count(self, name: str, by: int = 1) -> None:
            super().count(name, by)
            with login_as("web"):
                keeps(alice, wrap_ups=0)

    old = [(who.scope, old_session(who)) for who in (alice, bob)]
    keeps(alice, wrap_ups=30)
    with login_as("worker"):
        retention.step(Decided())
    assert sum(len(wrap_ups(whose, session)) for whose, session in old) == 1


def test_a_dry_run_tells_and_deletes_nothing(alice: Person, settings: Any) -> None:
    old = old_session(alice)
    keeps(alice, events=30, wrap_ups=30, journal=30)
    settings.PROCESS = "worker"
    out = io.StringIO()
    with login_as("worker"):
        call_command("purge", "--dry-run", stdout=out)
    (line,) = [line for line in out.getvalue().splitlines() if line.startswith(str(alice.scope.tenant_id))]
    assert line.endswith(": events 4, journal 1, sessions 1, wrap ups 1")
    assert "Nothing was" in out.getvalue()
    assert (events(alice, old), len(wrap_ups(alice.scope, old)), entries(alice)) == (4, 1, 1)


def test_two_at_once_delete_everything_once(alice: Person) -> None:
    for _ in range(3):
        old_session(alice)
    keeps(alice, events=30, wrap_ups=30, journal=30)
    runs = [Counted(), Counted()]

    def step(counted: Recorded) -> None:
        try:
            retention.step(counted)
        finally:
            connections.close_all()

    with login_as("worker"), ThreadPoolExecutor(2) as two:
        list(two.map(step, runs))
    both = runs[0].counts + runs[1].counts
    assert (both["sessions"], both["events"], both["wrap_ups"], both["journal"]) == (3, 12, 3, 3)


KILLED = """
import os, signal, django
django.setup()
from memberintel.privacy import retention
from memberintel.usage import runs
with runs.recorded("retention") as run:
    counted = run.count
    def count(name, number=1):
        counted(name, number)
        if run.counts["wrap_ups"] == 2:  # both of the first customer, none of the second
            os.kill(os.getpid(), signal.SIGKILL)
    run.count = count
    retention.step(run)
"""


def test_a_run_that_was_killed_is_finished_by_the_next(alice: Person, bob: Person) -> None:
    for who in (alice, bob, alice, bob):
        old_session(who)
    keeps(alice, wrap_ups=30, journal=30)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "memberintel.settings",
        "MEMBERINTEL_PROCESS": "worker",
    }
    killed = subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert purged() == {"wrap_ups": 2, "journal": 4}  # what was deleted before stays so
    assert (entries(alice), entries(bob)) == (0, 0)
    assert Run.objects.filter(kind=retention.RUN, finished_at=None).exists()


def test_nothing_is_deleted_under_a_key_that_cannot_be_had(
    alice: Person, dora: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, hers = old_session(alice), old_session(dora)
    for who in (alice, dora):
        keeps(who, events=30)

    real = keyring.customer_key

    def key() -> bytes:
        if keyring.customer_owner().customer == alice.user.pk:
            raise WrongKey("x")
        return real()

    monkeypatch.setattr(keyring, "customer_key", key)
    with pytest.raises(retention.SomeKept):
        purged()
    assert (events(alice, old), events(dora, hers)) == (4, 0)


def test_every_participant_tells_what_it_would_purge() -> None:
    for module in participants._modules():
        assert hasattr(module, "purge") == hasattr(module, "past"), module
