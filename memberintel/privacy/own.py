"""What the product itself keeps about a customer, in their archive: what models used for them, and who looked."""

from __future__ import annotations

from typing import Final

from memberintel.privacy.archive import Archive
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import current_customer_id
from memberintel.tenancy.models import User
from memberintel.usage.models import LedgerEntry

HIDDEN: Final = {"api_tokens": ("digest",)}  # who holds it can tell a token by it


def export(archive: Archive) -> None:
    """The account, the ledger's rows and the audit's about the customer."""
    me = current_customer_id()
    archive.table(User, _SECRET, lambda: User.objects.filter(pk=me))
    archive.table(LedgerEntry, (), lambda: LedgerEntry.objects.filter(customer_id=me))
    archive.table(AuditRow, (), lambda: AuditRow.objects.filter(customer_id=me))


_SECRET: Final = ("password", "sign_outs", "is_superuser", "is_staff")
