"""Writing and publishing shared knowledge: by staff on the desk, and from files. With a login that may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import IntegrityError, transaction

from brain import tasks
from brain.domain.knowledge import Written
from brain.models import Knowledge, KnowledgeDraft
from memberintel.lib import clock


@dataclass
class Imported:
    """What became of files, by slug. `kept`: changed on the desk since, so the file was left aside."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


class Taken(Exception):
    """There is an article with that slug."""


def write(article: Written, *, using: str) -> KnowledgeDraft:
    """Keep a new article as a draft, which staff alone read. Raises Taken."""
    row = KnowledgeDraft(slug=article.slug, title=article.title, topic=article.topic, text=article.text)
    try:
        with transaction.atomic(using=using):
            row.save(using=using, force_insert=True)
    except IntegrityError:
        raise Taken from None
    return row


def publish(draft: KnowledgeDraft, *, using: str) -> None:
    """Put the draft where every customer's advisor reads. Its vector is made afterwards, by a worker."""
    now = clock.now()
    with transaction.atomic(using=using):
        before = Knowledge.objects.using(using).filter(id=draft.id).first()
        row = before or Knowledge(id=draft.id, published_at=now)
        if before is None or (before.title, before.text) != (draft.title, draft.text):
            row.vector, row.embedder = None, ""
        row.slug, row.title, row.topic, row.text = draft.slug, draft.title, draft.topic, draft.text
        row.changed_at = now
        row.save(using=using)
        draft.published_at = now
        draft.save(using=using, update_fields=["published_at"])
        transaction.on_commit(tasks.embed_knowledge_soon, using=using, robust=True)


def withdraw(draft: KnowledgeDraft, *, using: str) -> None:
    """Take the article from every customer's advisor; the draft stays."""
    with transaction.atomic(using=using):
        Knowledge.objects.using(using).filter(id=draft.id).delete()
        draft.published_at = None
        draft.save(using=using, update_fields=["published_at"])


def bring_in(articles: Iterable[Written], *, using: str, publishing: bool = True) -> Imported:
    """Write and publish articles from files; all or none. By slug, and again without effect.

    One that staff have changed on the desk since it came from its file is left as they made it, one they have
    withdrawn stays withdrawn.
    """
    done = Imported()
    with transaction.atomic(using=using):
        for article in articles:
            getattr(done, _bring_in(article, using, publishing)).append(article.slug)
    return done


def _bring_in(article: Written, using: str, publishing: bool) -> str:
    row = KnowledgeDraft.objects.using(using).select_for_update().filter(slug=article.slug).first()
    new, digest = row is None, article.digest()
    if row is not None:
        standing = Written(row.slug, row.title, row.topic, row.text).digest()
        if standing == digest or row.imported == digest:
            return "same" if standing == digest else "kept"
        if row.imported != standing:
            return "kept"
    row = row or KnowledgeDraft(slug=article.slug)
    was_out = new or row.published_at is not None
    row.title, row.topic, row.text, row.imported = article.title, article.topic, article.text, digest
    row.updated_at = clock.now()
    row.save(using=using)
    if publishing and was_out:
        publish(row, using=using)
    return "new" if new else "changed"
