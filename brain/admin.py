"""Documents on the support desk: which, which version, when and by whom changed; never their text."""

from __future__ import annotations

from django.contrib import admin

from brain.models import Document
from memberintel.tenancy.desk import Look, Made, opener


@admin.register(Document)
class DocumentDesk(Look):
    """SOUL and BIBLE of every customer."""

    list_display = ("kind", "customer", "version", "updated_at", "updated_by")
    list_filter = (Made,)
    fields = ("id", "kind", "customer_link", "tenant_link", "version", "updated_at", "updated_by")

    def opens(self, row: Document) -> list[tuple[str, str]]:
        """Its text and versions."""
        return [opener(f"Open {row.kind.upper()}", row.kind, row.customer_id)]
