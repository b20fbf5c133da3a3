"""MEMORY: single insights about a customer, found again by similarity, with what each said before."""

from __future__ import annotations

from django.db import models

from brain.models.documents import AUTHORS
from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel
from memberintel.vault.fields import SealedJSON, SealedText, SealedVector


class MemoryEntry(PrivateModel):
    """One insight as it stands.

    `reason` is why it was kept. `session_id` and `message_seq` are the message it came from, null for what a person
    typed on the page. `vector` is null until an embedder was at hand; vectors of two embedders are not compared.
    `changes` are what cleaning did to a model's text, in words.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    version = models.PositiveIntegerField(default=1)
    text = SealedText()
    reason = SealedText()
    changes = SealedJSON()
    source = models.CharField(max_length=16, choices=AUTHORS)
    session_id = models.UUIDField(null=True)
    message_seq = models.PositiveBigIntegerField(null=True)
    vector = SealedVector(null=True)
    embedder = models.CharField(max_length=120, blank=True, default="")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "memory_entries"
        verbose_name = "memory"
        verbose_name_plural = "memories"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(session_id__isnull=True, message_seq__isnull=True)
                | models.Q(session_id__isnull=False, message_seq__isnull=False),
                name="memory_entries_message_whole",
            ),
            models.CheckConstraint(
                condition=models.Q(vector__isnull=True, embedder="")
                | models.Q(vector__isnull=False) & ~models.Q(embedder=""),
                name="memory_entries_vector_and_embedder",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant_id", "customer_id", "id"], name="memory_entries_of"),
            models.Index(
                fields=["tenant_id", "customer_id", "session_id"],
                name="memory_entries_from",
                condition=models.Q(session_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class MemoryVersion(PrivateModel):
    """What an entry said before it was changed or replaced. Never changed; it goes with its entry."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    entry_id = models.UUIDField()
    version = models.PositiveIntegerField()
    text = SealedText()
    reason = SealedText()
    source = models.CharField(max_length=16, choices=AUTHORS)
    session_id = models.UUIDField(null=True)
    message_seq = models.PositiveBigIntegerField(null=True)
    at = models.DateTimeField()
    replaced_at = models.DateTimeField()

    class Meta:
        db_table = "memory_versions"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "customer_id", "entry_id", "version"], name="memory_versions_once"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
