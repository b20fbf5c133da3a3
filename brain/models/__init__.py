"""What is kept of a customer's brain, and of a tenant's sites."""

from brain.models.documents import AUTHORS, KINDS, Document, DocumentVersion, PromptPart
from brain.models.heartbeat import Heartbeat, MetricSnapshot, Site, Source

__all__ = [
    "AUTHORS",
    "KINDS",
    "Document",
    "DocumentVersion",
    "Heartbeat",
    "MetricSnapshot",
    "PromptPart",
    "Site",
    "Source",
]
