"""A session and its events. Events are written by `sessions.log` alone and never change."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel
from memberintel.vault.fields import SealedText


class CloseReason(models.TextChoices):
    """Why a session ended."""

    ENDED = "ended", "ended by the customer"
    STREAM_CLOSED = "stream_closed", "the page was left"
    IDLE = "idle", "silence"
    ERASED = "erased", "erased"


class EraseReason(models.TextChoices):
    """Why the events of a session are no more; `app.erase_session` checks that the reason holds."""

    CUSTOMER = "customer", "deleted by the customer"
    OFF_RECORD = "off_record", "off the record"
    RETENTION = "retention", "older than the retention period"
    ACCOUNT = "account", "the account was erased"


class Session(PrivateModel):
    """One conversation, open until it closes, then read-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    title = SealedText(owner="customer", null=True)
    # First and last user message; until there is one, the time of opening. Silence is measured by `ended_at`.
    started_at = models.DateTimeField(default=clock.now)
    ended_at = models.DateTimeField(default=clock.now)
    last_activity_at = models.DateTimeField(default=clock.now)
    leaving_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    close_reason = models.CharField(max_length=20, choices=CloseReason, null=True)
    archived_at = models.DateTimeField(null=True)
    # Set by `app.erase_session` with the deletion of its events; the row is a shell from then on.
    erased_at = models.DateTimeField(null=True, editable=False)
    erase_reason = models.CharField(max_length=12, choices=EraseReason, null=True, editable=False)
    last_seq = models.BigIntegerField(default=0)
    continues = models.UUIDField(null=True)
    off_record = models.BooleanField(default=False)
    imported = models.BooleanField(default=False)
    user_messages = models.PositiveIntegerField(default=0)
    substantive = models.BooleanField(default=False)
    # The lease of the turn that runs now or ran last: at most one process may append for it.
    turn_id = models.UUIDField(null=True)
    turn_attempt = models.PositiveIntegerField(default=0)
    turn_owner = models.CharField(max_length=80, default="")
    turn_lease_until = models.DateTimeField(null=True)
    turn_stop = models.BooleanField(default=False)

    class Meta:
        db_table = "sessions"
        base_manager_name = "objects"
        constraints: ClassVar = [
            # An import brings whole finished conversations and does not disturb the one that is open.
            models.UniqueConstraint(
                fields=["tenant_id", "customer_id"],
                condition=Q(closed_at=None, imported=False),
                name="sessions_one_open",
            ),
            models.CheckConstraint(
                condition=Q(closed_at=None, close_reason=None)
                | Q(closed_at__isnull=False, close_reason__isnull=False),
                name="sessions_closed_with_reason",
            ),
            # A shell is closed, says why, and keeps no text.
            models.CheckConstraint(
                condition=Q(erased_at=None, erase_reason=None)
                | Q(
                    erased_at__isnull=False,
                    erase_reason__isnull=False,
                    closed_at__isnull=False,
                    title__isnull=True,
                ),
                name="sessions_erased_is_a_shell",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                "tenant_id",
                "customer_id",
                F("last_activity_at").desc(),
                F("id").desc(),
                name="sessions_list",
            ),
            models.Index("ended_at", condition=Q(closed_at=None), name="sessions_idle"),
            models.Index(
                "leaving_at", condition=Q(closed_at=None, leaving_at__isnull=False), name="sessions_leaving"
            ),
            models.Index(
                "closed_at",
                condition=Q(off_record=True, closed_at__isnull=False, erased_at=None),
                name="sessions_unkept",
            ),
        ]

    def __str__(self) -> str:
        return f"session {self.id}"

    @property
    def is_open(self) -> bool:
        """Whether it still takes messages."""
        return self.closed_at is None

    @property
    def is_deleted(self) -> bool:
        """Whether the customer deleted it: it is listed nowhere."""
        return self.erase_reason in GONE


GONE = (EraseReason.CUSTOMER, EraseReason.ACCOUNT)
"""Why a session is listed nowhere; one erased for another reason has its place, without its words."""


class SessionEvent(PrivateModel):
    """One immutable row of a session's log, addressed by (session, seq)."""

    pk = models.CompositePrimaryKey("session_id", "seq")
    session_id = models.UUIDField()
    seq = models.BigIntegerField()
    id = models.UUIDField()
    kind = models.CharField(max_length=40)
    turn = models.UUIDField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    client_key = models.CharField(max_length=100, null=True)
    payload = models.JSONField()
    sealed = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "session_events"
        base_manager_name = "objects"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant_id", "customer_id", "client_key"],
                condition=Q(client_key__isnull=False),
                name="session_events_client_key",
            ),
        ]
        indexes: ClassVar = [
            # Finds where the live part of a log begins without walking it.
            models.Index(
                "tenant_id",
                "session_id",
                F("seq").desc(),
                condition=Q(kind__in=["compaction_applied", "context_frozen", "prompt_refreshed"]),
                name="session_events_marks",
            ),
            # Finds where a turn begins, however long the log has become since.
            models.Index(
                fields=["tenant_id", "session_id", "turn"],
                condition=Q(kind="user_message"),
                name="session_events_turns",
            ),
        ]

    def __str__(self) -> str:
        return f"event {self.session_id}/{self.seq}"


class ForgotReport(PrivateModel):
    """The customer pressed "You forgot something" in a session: that, and when; once for each of its turns."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session_id = models.UUIDField(editable=False)
    turn = models.UUIDField(null=True, editable=False)
    at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "forgot_reports"
        base_manager_name = "objects"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant_id", "session_id", "turn"],
                nulls_distinct=False,
                name="forgot_reports_once_a_turn",
            ),
        ]
        indexes: ClassVar = [models.Index("at", name="forgot_reports_at")]

    def __str__(self) -> str:
        return f"report {self.id}"


class Lexemes(models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    """A set of words the database can search (tsvector), read as text.

    Not Django's own field: its app would ask every new connection for types of extensions that are not used here.
    """

    def db_type(self, connection: object) -> str:
        return "tsvector"


class SessionTerms(PrivateModel):
    """The terms of one event's text, each a keyed hash, without their order. Written by `sessions.indexer` alone."""

    # Ids of sessions and numbers in them go up with time, so this key read backwards is "newest first".
    pk = models.CompositePrimaryKey("tenant_id", "customer_id", "session_id", "seq")
    session_id = models.UUIDField()
    seq = models.BigIntegerField()
    terms = Lexemes()  # its index is made in the migration

    class Meta:
        db_table = "session_terms"
        base_manager_name = "objects"

    def __str__(self) -> str:
        return f"terms of event {self.session_id}/{self.seq}"


class SearchProgress(PrivateModel):
    """How far a session's log is in the index, and how its terms were made. Without a row nothing of it is."""

    pk = models.CompositePrimaryKey("tenant_id", "customer_id", "session_id")
    session_id = models.UUIDField()
    indexed_seq = models.BigIntegerField(default=0)
    language = models.CharField(max_length=8, default="")
    version = models.PositiveSmallIntegerField()
    indexed_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "search_progress"
        base_manager_name = "objects"
        indexes: ClassVar = [
            # In which languages a customer's texts are indexed.
            models.Index(fields=["tenant_id", "customer_id", "language"], name="search_progress_language"),
        ]

    def __str__(self) -> str:
        return f"search progress of session {self.session_id}"
