"""Writing the ledger."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from memberintel.usage.models import LedgerEntry


@dataclass(frozen=True)
class CallRecord:
    """One call of a model, as the ledger keeps it. Tokens, micro-dollars (None: price not known), milliseconds."""

    session: UUID | None
    turn: UUID | None
    purpose: str
    provider: str
    model: str
    attempt: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    estimated: bool
    cost_micros: int | None
    outcome: str
    error_code: str
    error_reason: str
    request_digest: str
    request_bytes: int
    started_at: datetime
    duration_ms: int


def record_call(record: CallRecord) -> LedgerEntry:
    """Adds a row for the scope in force (its customer, or none). Rows are never changed afterwards."""
    return LedgerEntry.objects.create(**asdict(record))
