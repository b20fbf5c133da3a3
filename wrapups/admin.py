"""Wrap-ups and owed work on the support desk, as metadata. Owed work can be tried again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.desk import Look, Made, act, flag, labels, link, opener, record
from wrapups import actions
from wrapups.models import ClosingJob, JobState, JournalEntry, SessionLog
from wrapups.pooling.desk import LegalReviewDesk

__all__ = ["ClosingJobDesk", "JournalDesk", "LegalReviewDesk", "SessionLogDesk"]

STATES: dict[str, str] = {
    JobState.QUEUED: "info",
    JobState.DONE: "success",
    JobState.FAILED: "danger",
    JobState.UNFUNDED: "warning",
}


@admin.register(SessionLog)
class SessionLogDesk(Look):
    """Wrap-ups: by which model, how long, whether shortened or edited."""

    list_display = (
        "created_at",
        "customer",
        "model",
        "prompt_version",
        "word_count",
        "shortened",
        "dropped",
        "edited",
    )
    list_filter = (
        flag("edited", "edited", "Edited by a person", Q(edited_at__isnull=False)),
        flag("shortened", "shortened", "Shortened to fit", Q(shortened=True)),
        Made,
    )
    fields = (
        *("id", "customer_link", "tenant_link", "session_link", "created_at"),
        *("session_started_at", "session_last_activity_at", "model", "prompt_version"),
        *("word_count", "shortened", "dropped", "edited_at"),
    )

    def opens(self, row: SessionLog) -> list[tuple[str, str]]:
        """What it says."""
        return [opener("Open the wrap-up", "wrap_up", row.pk)]

    @admin.display(description="edited", boolean=True)
    def edited(self, row: SessionLog) -> bool:
        """Whether the customer, or staff on their behalf, changed it."""
        return row.edited_at is not None

    @admin.display(description="session")
    def session_link(self, row: SessionLog) -> SafeString:
        """The session it is of."""
        return link("chat_session", row.session_id, str(row.session_id))


@admin.register(JournalEntry)
class JournalDesk(Look):
    """Places of sessions in the journal: by which model, whether edited."""

    list_display = ("created_at", "customer", "blob_by", "feeling_by", "edited_at")
    list_filter = (Made,)
    fields = (
        *("id", "customer_link", "tenant_link", "session_link", "created_at"),
        *("session_started_at", "session_last_activity_at", "blob_by", "feeling_by", "edited_at"),
    )

    def opens(self, row: JournalEntry) -> list[tuple[str, str]]:
        """It stands among the others."""
        return [opener("Open the journal", "journal", row.customer_id)]

    @admin.display(description="session")
    def session_link(self, row: JournalEntry) -> SafeString:
        """The session it is of."""
        return link("chat_session", row.session_id, str(row.session_id))


class StateFilter(admin.SimpleListFilter):
    """Where the work stands. An index begins with it, so a rare state is found as fast as a common one."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return JobState.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(state=self.value()) if self.value() in JobState.values else queryset


@admin.register(ClosingJob)
class ClosingJobDesk(Look):
    """Work owed for closed sessions."""

    list_display = ("created_at", "kind", "state_label", "customer", "attempt", "last_error", "next_try_at")
    list_filter = (StateFilter, Made)
    fields = (
        *("id", "kind", "state_label", "customer_link", "tenant_link", "session_link"),
        *("created_at", "attempt", "daily_tries", "last_error", "lease_until", "next_try_at"),
        *("session_started_at", "session_last_activity_at"),
    )
    actions = ("retry",)

    @labels("state", STATES)
    def state_label(self, row: ClosingJob) -> str:
        """The state, coloured."""
        return row.state

    @admin.display(description="session")
    def session_link(self, row: ClosingJob) -> SafeString:
        """The session it is owed for."""
        return link("chat_session", row.session_id, str(row.session_id))

    @act("Try again now")
    def retry(self, request: HttpRequest, queryset: QuerySet[ClosingJob]) -> None:
        """Put the jobs chosen back on the queue, each in its own customer's scope."""
        again = 0
        for job in queryset[: self.list_per_page]:
            again += self._retry(request, job)
        if again:
            messages.success(request, f"{again} {'job is' if again == 1 else 'jobs are'} on the queue again.")
        else:
            messages.warning(
                request, "Nothing to do: only queued and failed jobs that nobody works on are retried."
            )

    def _retry(self, request: HttpRequest, job: ClosingJob) -> bool:
        """The job and its line in the desk's log together."""
        owner = Scope(job.tenant_id, job.customer_id)
        with scope(owner), transaction.atomic():
            done = actions.retry(job.pk, owner)
            if done:
                record(request, job, "Tried again.")
        return done
