"""Writes a session's place in the journal: what happened, in the customer's voice, and how they felt.

Two pieces of work, each made from the customer's own messages alone; one that fails leaves the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memberintel.accounts.queries import person
from memberintel.lib import tokens
from memberintel.lib.language import differ
from memberintel.lib.text import clean, count_words
from memberintel.llm import windows
from memberintel.llm.seam import complete
from memberintel.llm.types import Completion, Message, Prompt
from memberintel.tenancy.context import Scope
from memberintel.tenancy.rows import insert
from memberintel.tenancy.unit import unit
from sessions import queries as sessions
from wrapups.domain import journal
from wrapups.domain.journal import MoodOutput
from wrapups.handover import actions as handover
from wrapups.jobs import Claim, Store
from wrapups.models import JournalEntry
from wrapups.prompting import flat, template
from wrapups.work import NothingMade

BLOB_VERSION, MOOD_VERSION = "journal_1", "mood_1"
NOBODY = "the user"
_SHARE_OF_WINDOW = 0.6


@dataclass(frozen=True)
class _Own:
    """What the customer wrote in a session: (when, text) pairs, and who and where they are."""

    name: str
    zone: ZoneInfo
    said: tuple[tuple[datetime, str], ...]

    @property
    def words(self) -> int:
        """Words they wrote."""
        return sum(count_words(text) for _, text in self.said)


async def make_blob(held: Claim, scope: Scope) -> Store:
    """Have the passage written. Raises ModelError, NothingMade or a VaultError."""
    own = await unit(scope, _material, held.session)
    system = template(BLOB_VERSION).replace("{name}", _name(own)).replace("{length}", _length(own.words))
    answer = await complete(
        "journal", await _prompt(system, own, "journal"), scope=scope, session=held.session
    )
    text = journal.blob(answer.text, written=own.words)
    if not text:
        raise NothingMade("no_passage")
    if differ(text, "\n".join(one for _, one in own.said)):
        raise NothingMade("other_language")  # it is no voice of theirs

    def store(held: Claim, now: datetime) -> None:
        row = _row(held, now)
        if row.edited_at is None:  # a person's own words are never written over
            row.blob, row.blob_by = text, _by(answer, BLOB_VERSION)
            row.save(update_fields=["blob", "blob_by"])
            handover.session_changed(held.session)

    return store


async def make_mood(held: Claim, scope: Scope) -> Store:
    """Have mood, energy, reason and themes found. Raises ModelError, NothingMade or a VaultError."""
    own = await unit(scope, _material, held.session)
    system = template(MOOD_VERSION).replace("{name}", _name(own))
    prompt = await _prompt(system, own, "mood")
    answer = await complete("mood", prompt, scope=scope, output=MoodOutput, session=held.session)
    if answer.output is None:
        raise NothingMade("no_output")
    found = journal.feeling(answer.output)

    def store(held: Claim, now: datetime) -> None:
        row = _row(held, now)
        row.feeling = {
            "mood": found.mood,
            "energy": found.energy,
            "reason": found.reason,
            "themes": list(found.themes),
        }
        row.feeling_by = _by(answer, MOOD_VERSION)
        row.save(update_fields=["feeling", "feeling_by"])
        handover.session_changed(held.session)

    return store


def _row(held: Claim, now: datetime) -> JournalEntry:
    """The session's entry, made when there is none, locked: blob and mood may be stored at the same moment."""
    entry = JournalEntry(
        session_id=held.session,
        session_started_at=held.session_started_at,
        session_last_activity_at=held.session_last_activity_at,
        created_at=now,
    )
    insert(entry, unless=("tenant_id", "session_id"))
    return JournalEntry.objects.select_for_update().get(session_id=held.session)


def _material(session: UUID) -> _Own:
    who = person()
    lines = sessions.transcript_lines(session)
    said = tuple((line.at, line.text) for line in lines if line.role == "customer")
    if not said:
        raise NothingMade("no_transcript")
    return _Own(who.display_name, who.zone, said)


def _name(own: _Own) -> str:
    """The name on one line and short: it is written by a person and goes into instructions."""
    return " ".join(clean(own.name).split())[:80] or NOBODY


def _length(written: int) -> str:
    if written < journal.SHORT_WORDS:
        return "Two sentences."
    return f"At most {journal.limit_words(written)} words, and fewer where little happened."


async def _prompt(system: str, own: _Own, purpose: str) -> Prompt:
    """The request; of a session that no window holds, the beginning and the end, which carry the arc."""
    lines = [_line(at, text, own.zone) for at, text in own.said]
    room = int(await windows.window(purpose) * _SHARE_OF_WINDOW)
    dated = f"{_day(own)}\n<lines>\n{chr(10).join(_fitting(lines, room))}\n</lines>"
    return Prompt(system=(system,), messages=(Message("user", dated),))


def _line(at: datetime, text: str, zone: ZoneInfo) -> str:
    return f"[{at.astimezone(zone):%H:%M}] {flat(text)}"


def _fitting(lines: list[str], room: int) -> list[str]:
    costs = [tokens.count(line) for line in lines]
    if sum(costs) <= room:
        return lines
    first: list[str] = []
    last: list[str] = []
    low, high, left = 0, len(lines) - 1, room
    while low <= high:
        place = low if len(first) <= len(last) else high
        left -= costs[place]
        if left < 0:
            break
        if place == low:
            first.append(lines[place])
            low += 1
        else:
            last.insert(0, lines[place])
            high -= 1
    return [*first, "(…)", *last] if first else [lines[0][: room * 2]]


def _day(own: _Own) -> str:
    first, last = own.said[0][0].astimezone(own.zone), own.said[-1][0].astimezone(own.zone)
    return f"{first:%A} {first.day} {first:%B %Y}, {first:%H:%M} to {last:%H:%M}"


def _by[T](answer: Completion[T], version: str) -> str:
    return f"{answer.provider}:{answer.model} {version}"[:160]
