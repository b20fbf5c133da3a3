"""Documents and MEMORY on the support desk as metadata, never their text; and the knowledge staff write for all."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.decorators import action

from brain.models import Document, DocumentVersion, KnowledgeDraft, MemoryEntry
from brain.shared import actions as shared
from memberintel.lib import clock
from memberintel.tenancy.desk import SUPPORT, Look, Made, flag, labels, opener
from memberintel.tenancy.models import User


@admin.register(Document)
class DocumentDesk(Look):
    """SOUL and BIBLE of every customer."""

    list_display = ("kind", "customer", "version", "updated_at", "updated_by")
    list_filter = (Made,)
    fields = ("id", "kind", "customer_link", "tenant_link", "version", "updated_at", "updated_by")

    def opens(self, row: Document) -> list[tuple[str, str]]:
        """Its text and versions."""
        return [opener(f"Open {row.kind.upper()}", row.kind, row.customer_id)]


@admin.register(DocumentVersion)
class VersionDesk(Look):
    """What SOUL and BIBLE once said, as metadata: which version, by whom, when."""

    list_display = ("at", "customer", "kind", "version", "author", "redacted_on")
    list_filter = (Made,)
    fields = (
        *("id", "kind", "version", "customer_link", "tenant_link", "at", "author"),
        *("restores", "session_id", "message_seq", "redacted_on"),
    )

    def opens(self, row: DocumentVersion) -> list[tuple[str, str]]:
        """It stands among the others with the document."""
        return [opener(f"Open {row.kind.upper()}", row.kind, row.customer_id)]


@admin.register(MemoryEntry)
class MemoryDesk(Look):
    """MEMORY of every customer: how much, from whom, how old; never its text."""

    list_display = ("created_at", "customer", "source", "version", "embedder", "updated_at")
    list_filter = (Made,)
    fields = (
        *("id", "customer_link", "tenant_link", "source", "version", "session_id", "message_seq"),
        *("embedder", "created_at", "updated_at"),
    )

    def opens(self, row: MemoryEntry) -> list[tuple[str, str]]:
        """What it says."""
        return [opener("Open the entry", "memory", row.pk)]


class ArticleForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """An article; whether its slug is taken is asked over the login that may read drafts."""

    def validate_unique(self) -> None:
        """Django would ask over the default login, which may not."""

    def clean_slug(self) -> str:
        """The slug, if it is free."""
        slug: str = self.cleaned_data["slug"]
        if KnowledgeDraft.objects.using(SUPPORT).filter(slug=slug).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError("There is an article with this slug.")
        return slug


@admin.register(KnowledgeDraft)
class KnowledgeDesk(Look):
    """Articles that every customer's advisor may be given. Written here as drafts, published and withdrawn; nothing of
    it is a customer's, so no reason is asked for."""

    form = ArticleForm
    list_display = ("title", "topic", "state", "updated_at", "published_at")
    list_filter = (flag("published", "published", "Published", Q(published_at__isnull=False)),)
    fields = ("title", "topic", "slug", "text", "state", "updated_at", "published_at")
    editable = ("title", "topic", "slug", "text")
    search_ids = ()
    owners = ()
    actions = ("publish", "withdraw")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_act_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_act_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The slug is what a file is known by: it is chosen once."""
        open_ = set(self.editable) - ({"slug"} if obj else set())
        return [name for name in super().get_readonly_fields(request, obj) if name not in open_]

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with transaction.atomic(using=SUPPORT):
            response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        return response

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.updated_at = clock.now()
        obj.save(using=SUPPORT)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return _note(request, obj, "Added.", ADDITION)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return _note(request, obj, "Changed.")

    @labels("state", {"published": "success", "draft": "info", "changed since": "warning"})
    def state(self, row: KnowledgeDraft) -> str:
        """Whether customers have it, and as it stands here."""
        if row.published_at is None:
            return "draft"
        return "changed since" if row.updated_at > row.published_at else "published"

    @action(description="Publish as it stands", permissions=["act"])  # type: ignore[untyped-decorator]
    def publish(self, request: HttpRequest, queryset: QuerySet[KnowledgeDraft]) -> None:
        """Give the articles chosen to every customer's advisor."""
        for row in queryset[: self.list_per_page]:
            with transaction.atomic(using=SUPPORT):
                shared.publish(row, using=SUPPORT)
                _note(request, row, "Published.")
            messages.success(request, f"“{row.title}” is published.")

    @action(description="Withdraw", permissions=["act"])  # type: ignore[untyped-decorator]
    def withdraw(self, request: HttpRequest, queryset: QuerySet[KnowledgeDraft]) -> None:
        """Take the articles chosen from every customer's advisor."""
        for row in queryset[: self.list_per_page]:
            with transaction.atomic(using=SUPPORT):
                shared.withdraw(row, using=SUPPORT)
                _note(request, row, "Withdrawn.")
            messages.success(request, f"“{row.title}” is withdrawn; the draft is kept.")


def _note(request: HttpRequest, row: KnowledgeDraft, message: str, what: int = CHANGE) -> LogEntry:
    """A line in the desk's log."""
    entry = LogEntry(
        user=cast(User, request.user),
        content_type_id=ContentType.objects.get_for_model(row).pk,
        object_id=str(row.pk),
        object_repr=str(row)[:200],
        action_flag=what,
        change_message=message,
        action_time=clock.now(),
    )
    entry.save(using=SUPPORT)
    return entry
