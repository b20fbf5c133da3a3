"""Writing the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memberintel.lib import metrics
from memberintel.tenancy.rows import insert
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
    _count(record)
    row = LedgerEntry(**vars(record))
    insert(row)
    return row


def _count(record: CallRecord) -> None:
    metrics.MODEL_CALLS.labels(record.purpose, record.provider, record.model, record.outcome).inc()
    metrics.MODEL_SECONDS.labels(record.purpose).observe(record.duration_ms / 1000)
    metrics.MODEL_TOKENS.labels(record.purpose, "in").inc(record.input_tokens)
    metrics.MODEL_TOKENS.labels(record.purpose, "out").inc(record.output_tokens)
    metrics.MODEL_MICROS.labels(record.purpose).inc(record.cost_micros or 0)
