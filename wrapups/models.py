"""Wrap-ups, and the work owed for closed sessions."""

from __future__ import annotations

from django.db import models

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel, TenantModel
from memberintel.vault.fields import SealedJSON, SealedText
from wrapups.pooling.models import LegalReview, PooledGroup, PooledSupport, PoolingChoice

__all__ = [
    "ClosingJob",
    "ExternalDeletion",
    "HandOver",
    "HandOverConsent",
    "ItemMark",
    "JobKind",
    "JobState",
    "JournalEntry",
    "LegalReview",
    "MarkState",
    "PooledGroup",
    "PooledSupport",
    "PoolingChoice",
    "SessionLog",
]


class SessionLog(PrivateModel):
    """The wrap-up of one session. Workers insert it and can never change or delete it.

    `decisions`, `open_items` and `new_context` are lists of {id, text, messages}; an id lasts as long as the
    item, messages are numbers of the session's messages. The session's times are copied: they never change
    once it is closed, and lists and prompts are ordered by them.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session_id = models.UUIDField(editable=False)
    session_started_at = models.DateTimeField(editable=False)
    session_last_activity_at = models.DateTimeField(editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    summary = SealedText()
    decisions = SealedJSON()
    open_items = SealedJSON()
    # Ids of `open_items`, in order: what is still open is found without opening a wrap-up.
    open_item_ids = models.JSONField(default=list)
    new_context = SealedJSON()
    next_session_note = SealedText()
    model = models.CharField(max_length=120)
    prompt_version = models.CharField(max_length=40)
    word_count = models.PositiveIntegerField()
    shortened = models.BooleanField(default=False)
    dropped = models.PositiveIntegerField(default=0)
    edited_at = models.DateTimeField(null=True)
    edited_by = models.UUIDField(null=True)

    class Meta:
        db_table = "session_logs"
        verbose_name = "wrap-up"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "session_id"], name="session_logs_one_per_session"),
            models.CheckConstraint(
                condition=models.Q(edited_at__isnull=True, edited_by__isnull=True)
                | models.Q(edited_at__isnull=False, edited_by__isnull=False),
                name="session_logs_edited_when_and_by",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "customer_id", "-session_last_activity_at", "-id"],
                name="session_logs_recent",
            ),
            # What staff filter for: a few among all.
            models.Index(
                fields=["id"], name="session_logs_edited", condition=models.Q(edited_at__isnull=False)
            ),
            models.Index(fields=["id"], name="session_logs_shortened", condition=models.Q(shortened=True)),
        ]

    def __str__(self) -> str:
        return str(self.id)


class JournalEntry(PrivateModel):
    """A session's place in the journal: the passage, how the customer felt, either of which may not be there yet.

    `feeling` is {mood, energy, reason, themes}. No day is stored: which one it is depends on the customer's time
    zone, and follows when that changes.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session_id = models.UUIDField(editable=False)
    session_started_at = models.DateTimeField(editable=False)
    session_last_activity_at = models.DateTimeField(editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    blob = SealedText(null=True)
    feeling = SealedJSON(null=True)
    blob_by = models.CharField(max_length=160, blank=True, default="")
    feeling_by = models.CharField(max_length=160, blank=True, default="")
    edited_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "journal_entries"
        verbose_name_plural = "journal entries"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "session_id"], name="journal_entries_one_per_session"
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "customer_id", "session_started_at"], name="journal_entries_by_start"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class MarkState(models.TextChoices):
    """What became of an open item; the newest mark says. Without one it is open."""

    RESOLVED = "resolved"
    REOPENED = "reopened"  # by the customer
    TOUCHED = "touched"  # a later session came back to it
    ASKED = "asked"  # untouched for long: asked about in that session, then parked


class ItemMark(PrivateModel):
    """What became of an open item of a wrap-up, which itself is not changed. Only ever added.

    By a session (then `session_id`, and `seq` of the message it rests on) or by the customer.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    wrap_up_id = models.UUIDField(editable=False)
    item_id = models.UUIDField(editable=False)
    state = models.CharField(max_length=10, choices=MarkState, editable=False)
    session_id = models.UUIDField(null=True, editable=False)
    seq = models.BigIntegerField(null=True, editable=False)
    at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "item_resolutions"
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=MarkState.values), name="item_mark_state"),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "customer_id", "wrap_up_id", "item_id", "-id"], name="item_marks_newest"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class JobKind(models.TextChoices):
    """What can be owed for a closed session."""

    WRAP_UP = "wrap_up"
    JOURNAL = "journal"
    MOOD = "mood"


class JobState(models.TextChoices):
    """Where owed work stands. Only `queued` and `failed` are ever worked on; the rest are final."""

    TRIVIAL = "trivial"
    OFF_RECORD = "off_record"
    QUEUED = "queued"
    DONE = "done"
    UNFUNDED = "unfunded"
    FAILED = "failed"
    DELETED = "deleted"
    EXPIRED = "expired"


class ClosingJob(PrivateModel):
    """One piece of work owed for a closed session, inserted by the transaction that closes it.

    `attempt` counts the claims and fences them: only the claim that carries the present number may write a
    result, and only while its lease lasts does nobody else claim. `last_error` is a code and holds no content.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session_id = models.UUIDField(editable=False)
    session_started_at = models.DateTimeField(editable=False)
    session_last_activity_at = models.DateTimeField(editable=False)
    kind = models.CharField(max_length=10, choices=JobKind)
    state = models.CharField(max_length=10, choices=JobState)
    charged = models.BooleanField(default=True, editable=False)  # what is imported costs nothing
    attempt = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    daily_tries = models.PositiveSmallIntegerField(default=0)
    last_error = models.CharField(max_length=60, blank=True, default="")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "closing_jobs"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "session_id", "kind"], name="closing_jobs_one_per_session_and_kind"
            ),
            models.CheckConstraint(condition=models.Q(kind__in=JobKind.values), name="closing_jobs_kind"),
            models.CheckConstraint(condition=models.Q(state__in=JobState.values), name="closing_jobs_state"),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "customer_id", "kind", "-session_last_activity_at"],
                name="closing_jobs_recent",
            ),
            # What was closed on a day.
            models.Index(
                fields=["tenant_id", "customer_id", "kind", "session_started_at"],
                name="closing_jobs_by_start",
            ),
            # What the backfill looks through: small however many jobs are done.
            models.Index(
                fields=["id"],
                name="closing_jobs_owed",
                condition=models.Q(state__in=["queued", "failed"]),
            ),
            # Also what is unfunded, from a day on: ids rise with time.
            models.Index(fields=["state", "id"], name="closing_jobs_by_state"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class HandOverConsent(TenantModel):
    """An owner has agreed that the tenant's sessions go to the external memory. Without a row none does."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    by = models.UUIDField(editable=False)
    at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "hand_over_consents"
        constraints = [models.UniqueConstraint(fields=["tenant_id", "by"], name="hand_over_consents_once")]

    def __str__(self) -> str:
        return str(self.tenant_id)


class HandOver(PrivateModel):
    """A session or a day in the external memory: what stands there, or is to. `document` is its id there.

    Of a session `session_id` is set, of a day `day`. `changed` counts what happened to it here since: what was read
    before a change does not settle it.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    document = models.CharField(max_length=60)
    session_id = models.UUIDField(null=True)
    day = models.DateField(null=True)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    changed = models.PositiveIntegerField(default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(default=clock.now)
    last_error = models.CharField(max_length=60, blank=True, default="")
    handed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "hand_overs"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "customer_id", "document"], name="hand_overs_once"),
        ]
        indexes = [
            # What is due: small however much was handed over.
            models.Index(fields=["next_try_at"], name="hand_overs_due", condition=models.Q(state="pending")),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ExternalDeletion(models.Model):
    """Something to delete from the external memory: a document of a customer's, or with an empty `document` all.

    Belongs to no tenant, since it has to outlive the customer; it holds ids alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    namespace = models.CharField(max_length=60)
    document = models.CharField(max_length=60, blank=True, default="")
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(default=clock.now)
    last_error = models.CharField(max_length=60, blank=True, default="")

    class Meta:
        db_table = "external_deletions"
        indexes = [models.Index(fields=["next_try_at"], name="external_deletions_due")]

    def __str__(self) -> str:
        return str(self.id)
