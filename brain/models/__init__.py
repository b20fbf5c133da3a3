"""What is kept of a customer's brain."""

from brain.models.documents import AUTHORS, KINDS, Document, DocumentVersion, PromptPart

__all__ = ["AUTHORS", "KINDS", "Document", "DocumentVersion", "PromptPart"]
