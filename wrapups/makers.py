"""What makes each kind of owed work. A new kind is one more line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from memberintel.tenancy.context import Scope
from wrapups import work, writer
from wrapups.journal import writer as journal
from wrapups.models import JobKind
from wrapups.work import Make, Outcome

MAKERS: Final[Mapping[str, Make]] = {
    JobKind.WRAP_UP: writer.make,
    JobKind.JOURNAL: journal.make_blob,
    JobKind.MOOD: journal.make_mood,
}


async def do(job: UUID, scope: Scope) -> Outcome:
    """Do one piece of owed work, of whatever kind it is."""
    return await work.do(job, scope, MAKERS)
