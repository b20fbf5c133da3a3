"""A customer's documents with every version of them, and the texts that prompts were made of."""

from __future__ import annotations

from django.db import models

from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel
from memberintel.vault.fields import SealedText

KINDS = [("soul", "SOUL"), ("bible", "BIBLE")]
AUTHORS = [("customer", "customer"), ("advisor", "advisor"), ("staff", "staff")]


class Document(PrivateModel):
    """SOUL or BIBLE as it stands now."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=16, choices=KINDS)
    version = models.PositiveIntegerField()
    text = SealedText()
    updated_at = models.DateTimeField()
    updated_by = models.CharField(max_length=16, choices=AUTHORS)

    class Meta:
        db_table = "documents"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "customer_id", "kind"], name="documents_one_per_kind"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


class DocumentVersion(PrivateModel):
    """A document as it was saved once. Never changed, never deleted but with its customer or by retention.

    Its customer may have `text` and `reason` taken out, which `redacted_on` then dates; the row stays. An edit of
    the advisor's names the message it answered: `session_id` is no key, since a conversation may be deleted.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=16, choices=KINDS)
    version = models.PositiveIntegerField()
    text = SealedText(null=True)
    reason = SealedText(null=True)
    author = models.CharField(max_length=16, choices=AUTHORS)
    at = models.DateTimeField()
    session_id = models.UUIDField(null=True)
    message_seq = models.PositiveIntegerField(null=True)
    restores = models.PositiveIntegerField(null=True)
    changes = models.JSONField(default=list)
    redacted_on = models.DateField(null=True)

    class Meta:
        db_table = "document_versions"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "customer_id", "kind", "version"], name="document_versions_once"
            ),
            models.CheckConstraint(
                condition=models.Q(text__isnull=False, reason__isnull=False, redacted_on__isnull=True)
                | models.Q(text__isnull=True, reason__isnull=True, redacted_on__isnull=False),
                name="document_versions_text_or_redacted",
            ),
            models.CheckConstraint(
                condition=models.Q(session_id__isnull=True, message_seq__isnull=True)
                | models.Q(session_id__isnull=False, message_seq__isnull=False),
                name="document_versions_origin",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


class PromptPart(PrivateModel):
    """A text that stood in a system prompt. Events hold its digest; `text` is null once its source is gone.

    The digest is keyed with the customer's data key and covers the source too: equal texts of two customers
    do not show as equal, and removing one source leaves what another source said.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(max_length=64)
    source_kind = models.CharField(max_length=24)
    source_id = models.UUIDField(null=True)
    text = SealedText(null=True)
    created_at = models.DateTimeField()
    removed_on = models.DateField(null=True)

    class Meta:
        db_table = "prompt_parts"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "customer_id", "digest"], name="prompt_parts_once"),
            models.CheckConstraint(
                condition=models.Q(text__isnull=False, removed_on__isnull=True)
                | models.Q(text__isnull=True, removed_on__isnull=False),
                name="prompt_parts_text_or_removed",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "customer_id", "source_kind", "source_id"], name="prompt_parts_by_source"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_kind} {self.digest[:8]}"
