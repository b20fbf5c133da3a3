"""What pages cost a customer of many years: 10,000 sessions, 1,000 wrap-ups, and one session of 5,000 events."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evals.performance.log import session_of
from evals.performance.results import Figure, at_most
from memberintel.accounts.access import scope_of
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from sessions.models import CloseReason, Session
from wrapups.models import ClosingJob, JobKind, JobState, JournalEntry, SessionLog

SESSIONS, WRAP_UPS, EVENTS, A_DAY = 10_000, 1_000, 5_000, 3
ROUNDS = 100
SAID = (
    "They looked at why members leave in their first month, and at what the ones who stay did in their first week. "
    "They will write to all who have not posted yet, and look at the numbers again once the campaign is over."
)
ITEM = "Write the e-mail to the members who joined in May and have not been seen since, by Friday the 12th"
AS_WORKER = """
import sys
from uuid import UUID
import django
django.setup()
from evals.performance import pages
from memberintel.tenancy.context import Scope
pages.write_wrap_ups(Scope(*map(UUID, sys.argv[1:])))
"""
NOT_QUERIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")


def figures() -> Iterator[Figure]:
    """The queries of each page, and the time of 95 in 100 requests for it, without the network."""
    user, long = _customer()
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    for name, address in (
        (f"sessions at {SESSIONS:,} of them", reverse("sessions")),
        (f"wrap-ups at {WRAP_UPS:,} of them", reverse("wrap-ups")),
        (f"wrap-ups at {WRAP_UPS:,} of them, searched", reverse("wrap-ups") + "?q=campaign"),
        (f"wrap-ups at {WRAP_UPS:,} of them, searched in vain", reverse("wrap-ups") + "?q=zeppelin"),
        (f"open items at {WRAP_UPS:,} wrap-ups", reverse("open-items")),
        (f"journal at {WRAP_UPS:,} entries", reverse("journal")),
        (f"transcript of {EVENTS:,} events", reverse("session", args=[long])),
    ):
        queries, p95 = _ask(client, address)
        yield at_most(f"page of {name}, p95", p95, 60, "ms")
        yield at_most(f"page of {name}", queries, 12, "queries")


def _ask(client: Client, address: str) -> tuple[int, float]:
    """(queries of one request, milliseconds in which 95 of 100 are answered)."""

    def get() -> None:
        answer = client.get(address, secure=True)
        if answer.status_code != 200:
            raise RuntimeError(f"{address} answered {answer.status_code}")

    get()
    with CaptureQueriesContext(connection) as asked:
        get()
    queries = [each for each in asked.captured_queries if not each["sql"].startswith(NOT_QUERIES)]
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        get()
        times.append((time.perf_counter() - begun) * 1000)
    return len(queries), statistics.quantiles(times, n=20)[-1]


def _customer() -> tuple[User, UUID]:
    """Somebody with all that, and the id of their longest session."""
    tenant = Tenant.objects.create(name="bench", tier_id="pro")
    user = User.objects.create_user(f"bench-{uuid4().hex[:8]}@example.com", tenant=tenant)
    who = scope_of(user)
    with scope(who):
        Session.objects.bulk_create(map(_session, range(SESSIONS)), batch_size=1_000)
        newest = list(Session.objects.order_by("-last_activity_at")[:WRAP_UPS])
        ClosingJob.objects.bulk_create(_job(row, kind) for row in newest for kind in JobKind)
        JournalEntry.objects.bulk_create(map(_entry, newest))
        long = session_of(who, EVENTS)
        Session.objects.filter(id=long).update(closed_at=clock.now(), close_reason=CloseReason.ENDED)
    _write_wrap_ups(who)
    return user, long


def _session(number: int) -> Session:
    then = clock.now() - timedelta(days=number / A_DAY)
    return Session(
        id=uuid7(then), started_at=then, ended_at=then, last_activity_at=then, closed_at=then, title="The campaign",
        close_reason=CloseReason.IDLE, last_seq=9, user_messages=4, substantive=True,
    )  # fmt: skip


def _about(row: Session) -> dict[str, UUID | datetime]:
    return {
        "session_id": row.id,
        "session_started_at": row.started_at,
        "session_last_activity_at": row.last_activity_at,
    }


def _job(row: Session, kind: str) -> ClosingJob:
    return ClosingJob(kind=kind, state=JobState.DONE, **_about(row))


def _entry(row: Session) -> JournalEntry:
    felt = {"mood": "good", "energy": "high", "reason": "A plan at last", "themes": ["campaign", "members"]}
    return JournalEntry(blob=SAID, feeling=felt, **_about(row))


# --- as the worker's login, which alone may write wrap-ups -----------------------------------------------


def _write_wrap_ups(who: Scope) -> None:
    worker = {**os.environ, "MEMBERINTEL_PROCESS": "worker"}
    ids = [str(who.tenant_id), str(who.customer_id)]
    subprocess.run([sys.executable, "-c", AS_WORKER, *ids], env=worker, check=True)


def write_wrap_ups(who: Scope) -> None:
    """A wrap-up for each session with a job, of some 150 words."""
    with scope(who):
        sessions = ClosingJob.objects.filter(kind=JobKind.WRAP_UP).values_list("session_id", flat=True)
        SessionLog.objects.bulk_create(map(_wrap_up, Session.objects.filter(id__in=list(sessions))))


def _wrap_up(row: Session) -> SessionLog:
    lists = {
        kind: [{"id": str(uuid7()), "text": ITEM, "messages": [1], "seqs": [2]} for _ in range(2)]
        for kind in ("decisions", "open_items", "new_context")
    }
    return SessionLog(
        summary=SAID, next_session_note=ITEM, open_item_ids=[item["id"] for item in lists["open_items"]],
        model="bench:bench", prompt_version="bench", word_count=150, **lists, **_about(row),
    )  # fmt: skip
