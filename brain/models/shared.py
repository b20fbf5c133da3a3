"""Shared knowledge: what staff have written for all tenants. Tenant-less; nothing of a customer stands in it.

An article is written and changed as a draft, which only the login `support` and the owner's can read. Publishing copies
it to where every customer's advisor reads, in the clear by decision.
"""

from __future__ import annotations

from django.db import models

from memberintel.lib import clock
from memberintel.lib.ids import uuid7


class _Article(models.Model):
    """What draft and published article have in common."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    topic = models.CharField(max_length=60)
    text = models.TextField(max_length=4_000)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.title


class KnowledgeDraft(_Article):
    """An article as staff write it. `imported` is the digest of the file it came from, as long as nobody changed it
    here: then the file may change it again."""

    updated_at = models.DateTimeField(default=clock.now)
    published_at = models.DateTimeField(null=True, editable=False)
    imported = models.CharField(max_length=64, blank=True, default="", editable=False)

    class Meta:
        db_table = "knowledge_drafts"
        verbose_name = "article"


class Knowledge(_Article):
    """A published article. `vector` is null until an embedder was at hand: then it is found by its words."""

    published_at = models.DateTimeField()
    changed_at = models.DateTimeField(default=clock.now)
    vector = models.BinaryField(null=True, editable=False)
    embedder = models.CharField(max_length=120, blank=True, default="", editable=False)

    class Meta:
        db_table = "knowledge"
        verbose_name = "published article"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(vector__isnull=True, embedder="")
                | models.Q(vector__isnull=False) & ~models.Q(embedder=""),
                name="knowledge_vector_and_embedder",
            ),
        ]
