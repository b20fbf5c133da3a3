"""A customer with one of everything, all of it saying the same unmistakable words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from brain.actions import save_document
from brain.memory.actions import Choice, New, keep
from brain.models import Document, DocumentVersion, KnowledgeDraft
from memberintel import report as monthly
from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person as Told
from memberintel.lib import clock
from memberintel.privacy import requests
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from memberintel.usage import charges
from memberintel.usage.actions import CallRecord, record_call
from memberintel.usage.models import ChargeCounter, Kind, Run
from sessions.models import Session
from tests.admin.staff import clerk
from tests.conftest import Person, login_as
from tests.wrapups import stage
from wrapups.models import ClosingJob, JobKind, JobState, JournalEntry, LegalReview, SessionLog

PLANTED = "Zanzibarquagga"
SENTENCE = f"We decided to raise the yearly price, said {PLANTED}, and I'll write to all members of the site by Friday."


@dataclass(frozen=True)
class Scene:
    """What was planted for whom."""

    person: Person
    rows: dict[str, Any]

    def key(self, model: type[Any]) -> Any:
        """The primary key of the planted row of a model."""
        return self.rows[model._meta.label]


def plant(person: Person) -> Scene:
    """Everything a customer can leave behind, through the product's own doors where there are any."""
    session = stage.talked(person.scope, SENTENCE, f"Good, {PLANTED}.")
    with scope(person.scope):
        accounts.save_person(Told(PLANTED, "UTC", "en"))
        save_document(kind="soul", body=SENTENCE, base_version=0, by="customer", reason=PLANTED)
        row = Session.objects.get(id=session)
        row.title = SENTENCE
        row.save(update_fields=["title"])
        job = ClosingJob.objects.get(session_id=session, kind=JobKind.WRAP_UP)
        ClosingJob.objects.filter(id=job.id).update(state=JobState.FAILED, attempt=5, last_error="overloaded")
        call = record_call(_call(session))
        document = Document.objects.get(kind="soul")
        memory = keep(New(SENTENCE, PLANTED, "customer"), None, Choice(keep_both=True))
    with login_as("worker"), scope(person.scope):  # nobody else may write one
        wrap_up = _wrap_up(row)
        entry = JournalEntry.objects.create(
            session_id=session,
            session_started_at=row.started_at,
            session_last_activity_at=row.last_activity_at,
            blob=SENTENCE,
        )
        version = DocumentVersion.objects.get(kind="soul")
    with login_as("owner"):
        draft = KnowledgeDraft.objects.create(
            slug=uuid4().hex, title="On hives", topic="Beekeeping", text="x"
        )
    lawyers = LegalReview(reference="Opinion of 1 December", recorded_by=uuid4(), ended_at=clock.now())
    lawyers.save(using="support", force_insert=True)
    run = Run.objects.create(kind="wrap_up_backfill", counts={"due": 1}, finished_at=clock.now())
    with scope(person.scope):
        charges.take(Kind.CHAT_TURN, session)
        counter = ChargeCounter.objects.get(kind=Kind.CHAT_TURN)
    with login_as("worker"):
        report = monthly.make(charges.this_month())
    asked = requests.ask_erasure(staff=clerk("support"), whose=person.scope, reason=f"Asked, said {PLANTED}")
    with scope(person.scope):
        noted = AuditRow.objects.get(what=f"request {asked.pk}")
    rows = {
        "privacy.StaffRequest": asked.pk,
        "privacy.AuditRow": noted.pk,
        "chat.Session": session,
        "wrapups.SessionLog": wrap_up.id,
        "wrapups.ClosingJob": job.id,
        "usage.Run": run.id,
        "usage.LedgerEntry": call.id,
        "usage.ChargeCounter": counter.id,
        "usage.MonthlyReport": report.id,
        "brain.Document": document.id,
        "brain.DocumentVersion": version.id,
        "brain.MemoryEntry": memory.id,
        "wrapups.JournalEntry": entry.id,
        "brain.KnowledgeDraft": draft.id,
        "wrapups.LegalReview": lawyers.id,
        "tenancy.User": person.user.id,
        "tenancy.Tenant": person.user.tenant_id,
        "tenancy.Tier": "pro",
    }
    return Scene(person, rows)


def _wrap_up(session: Session) -> SessionLog:
    item = [{"id": "1", "text": SENTENCE, "messages": [1]}]
    return SessionLog.objects.create(
        session_id=session.id,
        session_started_at=session.started_at,
        session_last_activity_at=session.last_activity_at,
        summary=SENTENCE,
        decisions=item,
        open_items=item,
        new_context=item,
        next_session_note=SENTENCE,
        model="offline:extractive",
        prompt_version="test-1",
        word_count=20,
    )


def _call(session: UUID) -> CallRecord:
    return CallRecord(
        session=session,
        turn=None,
        purpose="chat",
        provider="offline",
        model="extractive",
        attempt=1,
        input_tokens=1200,
        output_tokens=300,
        cached_tokens=1000,
        cache_write_tokens=0,
        estimated=False,
        cost_micros=2_500_000,
        outcome="failed",
        error_code="overloaded",
        error_reason="",
        request_digest="a" * 64,
        request_bytes=4000,
        started_at=clock.now(),
        duration_ms=1500,
    )
