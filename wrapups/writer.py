"""Writes one wrap-up: reads the session, asks the model, gives what may be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memberintel.accounts.queries import person
from memberintel.lib.extract import Line
from memberintel.lib.ids import uuid7
from memberintel.llm import windows
from memberintel.llm.seam import complete
from memberintel.llm.types import Completion
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from sessions import queries as sessions
from wrapups import prompting
from wrapups.domain.draft import CAP_WORDS, AskShorter, Draft, Keep, Kept, WrapUpOutput, merge, validate
from wrapups.handover import actions as handover
from wrapups.jobs import Claim, Store
from wrapups.models import SessionLog
from wrapups.prompting import Said
from wrapups.work import NothingMade

_ANSWER_KEPT = 20_000  # characters of a too long answer that are shown to the model again


@dataclass(frozen=True)
class Provenance:
    """Who wrote a wrap-up: "provider:model", and the version of the prompt."""

    model: str
    prompt_version: str


async def make(held: Claim, scope: Scope) -> Store:
    """Have the session's wrap-up written. Raises ModelError, NothingMade or a VaultError."""
    said, zone = await unit(scope, _material, held.session)
    if not said:
        raise NothingMade("no_transcript")
    stretches = prompting.parts(said, await windows.window("wrap_up"))
    cap = CAP_WORDS // len(stretches)
    drafts = [await _ask(stretch, zone, cap, held, scope) for stretch in stretches]
    draft = merge([draft for draft, _ in drafts]) if len(drafts) > 1 else drafts[0][0]
    return storing(draft, Provenance(drafts[-1][1], prompting.VERSION))


def storing(draft: Draft, by: Provenance) -> Store:
    """What inserts the wrap-up."""

    def store(held: Claim, now: datetime) -> None:
        if SessionLog.objects.filter(session_id=held.session).exists():
            return  # written before, by a claim whose state was put back by hand
        SessionLog.objects.create(
            session_id=held.session,
            session_started_at=held.session_started_at,
            session_last_activity_at=held.session_last_activity_at,
            created_at=now,
            summary=draft.summary,
            decisions=_stored(draft.decisions),
            open_items=_stored(draft.open_items),
            new_context=_stored(draft.new_context),
            next_session_note=draft.next_session_note,
            model=by.model[:120],
            prompt_version=by.prompt_version,
            word_count=draft.words,
            shortened=draft.shortened,
            dropped=draft.dropped,
        )
        handover.session_changed(held.session)

    return store


def _stored(items: Sequence[Kept]) -> list[Mapping[str, object]]:
    return [{"id": str(uuid7()), "text": item.text, "messages": list(item.messages)} for item in items]


def _material(session: UUID) -> tuple[list[Said], ZoneInfo]:
    lines = sessions.transcript_lines(session)
    return [Said(Line(one.number, one.role, one.text), one.at) for one in lines], person().zone


async def _ask(
    said: Sequence[Said], zone: ZoneInfo, cap: int, held: Claim, scope: Scope
) -> tuple[Draft, str]:
    """A valid draft of this stretch, and "provider:model" of who wrote it; asked again while it is too long."""
    roles = {one.line.number: one.line.role for one in said}
    first = prompt = prompting.first_prompt(said, zone, cap)
    tries = 0
    while True:
        tries += 1
        answer = await complete("wrap_up", prompt, scope=scope, output=WrapUpOutput, session=held.session)
        intent = validate(_output(answer), roles, tries=tries, cap=cap)
        if isinstance(intent, Keep):
            return intent.draft, f"{answer.provider}:{answer.model}"
        if not isinstance(intent, AskShorter):
            raise NothingMade(intent.code)
        prompt = prompting.tighter(first, answer.text[:_ANSWER_KEPT], intent.words, cap)


def _output(answer: Completion[WrapUpOutput]) -> WrapUpOutput:
    if answer.output is None:
        raise NothingMade("no_output")
    return answer.output
