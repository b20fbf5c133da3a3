"""What is kept of a customer's brain and of a tenant's sites, and the knowledge all share."""

from brain.models.documents import AUTHORS, KINDS, Document, DocumentVersion, PromptPart
from brain.models.heartbeat import Heartbeat, MetricSnapshot, Site, Source
from brain.models.memory import MemoryEntry, MemoryVersion
from brain.models.shared import Knowledge, KnowledgeDraft

__all__ = [
    "AUTHORS",
    "KINDS",
    "Document",
    "DocumentVersion",
    "Heartbeat",
    "Knowledge",
    "KnowledgeDraft",
    "MemoryEntry",
    "MemoryVersion",
    "MetricSnapshot",
    "PromptPart",
    "Site",
    "Source",
]
