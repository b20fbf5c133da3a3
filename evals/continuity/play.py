"""Plays cases on the product: past sessions with the clock set back, then the follow-up in the present."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from brain.actions import save_document
from brain.domain.documents import KINDS
from evals.continuity.cases import Case, Edited, Session
from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.llm.backends import scripted
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.tenancy.unit import unit
from sessions import actions, conduct, log, turn
from sessions.domain import events as kinds
from sessions.domain.events import Event
from wrapups import actions as wrapups
from wrapups import queries
from wrapups.queries import WrapUp

PAST = "continuity"
"""The script the advisor of the past speaks by."""
BETWEEN = timedelta(minutes=2)
PATIENCE_SECONDS = 330.0  # longer than any deadline of a chat answer
TIER = "business"


class Broken(RuntimeError):
    """A case could not be played to its end."""


@dataclass
class Played:
    """What became of a case."""

    case: Case
    owner: Scope
    sessions: list[UUID] = field(default_factory=list)
    states: list[str | None] = field(default_factory=list)
    wrap_ups: list[WrapUp | None] = field(default_factory=list)
    last: UUID | None = None
    prompt: str = ""
    answer: str = ""
    broken: str = ""


@contextmanager
def spoken_by(route: str) -> Iterator[None]:
    """The advisor is this model for the while."""
    before = settings.LLM_ROUTES["chat"]
    settings.LLM_ROUTES["chat"] = (route,)
    try:
        yield
    finally:
        settings.LLM_ROUTES["chat"] = before


@contextmanager
def at(moment: datetime) -> Iterator[Callable[[timedelta], None]]:
    """It is that moment for the while; what is given moves it on."""
    now = moment
    before = clock.source

    def move(by: timedelta) -> None:
        nonlocal now
        now += by

    clock.source = lambda: now
    try:
        yield move
    finally:
        clock.source = before


def play(cases: Sequence[Case], *, write_notes: Callable[[], None]) -> list[Played]:
    """Every case to its end. Sessions of the same place in their cases are played together, then `write_notes`
    has the owed wrap-ups written."""
    played = [Played(case, _customer(case)) for case in cases]
    for place in range(max(len(case.session) for case in cases)):
        there = [one for one in played if place < len(one.case.session)]
        early = [one for one in there if not one.case.session[place].no_notes_yet]
        for one in early:
            _guarded(one, _past, place)
        write_notes()
        for one in early:
            _guarded(one, _afterwards, place)
        for one in there:
            if one not in early:
                _guarded(one, _past, place)
    for one in played:
        _guarded(one, _follow_up)
    return played


def _guarded(one: Played, step: Callable[..., None], *arguments: object) -> None:
    """A case that breaks off is a case that failed; the others go on."""
    if one.broken:
        return
    try:
        with scope(one.owner):
            step(one, *arguments)
    except Exception as error:
        one.broken = f"{type(error).__name__}: {error}"


def notes_written_by_worker(manage: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """Have everything owed written, by the command and under the login that do so every day."""
    ran = manage("backfill_wrapups", "--now", process="worker")
    if ran.returncode:
        raise Broken(ran.stderr[-600:])


def _customer(case: Case) -> Scope:
    tenant = Tenant.objects.create(name=case.name, tier_id=TIER)
    user = User.objects.create_user(f"{case.name}-{uuid7()}@evals.example", tenant=tenant, is_owner=True)
    owner = Scope(tenant.id, user.id)
    with scope(owner):
        accounts.save_person(Person(case.person.name, case.person.zone, case.person.language))
        for kind in KINDS:
            if body := getattr(case.documents, kind):
                save_document(kind=kind, body=body, base_version=0, by="customer", reason="")
    return owner


def _past(one: Played, place: int) -> None:
    told = one.case.session[place]
    began = clock.now() - timedelta(days=told.days_ago)
    with at(began) as move, spoken_by(f"scripted:{PAST}"):
        scripted.script(PAST, [{"steps": [{"text": answer}]} for _, answer in told.turns])
        one.sessions.append(asyncio.run(_talk(one.owner, told, move)))
    one.states.append(None)
    one.wrap_ups.append(None)


async def _talk(owner: Scope, told: Session, move: Callable[[timedelta], None]) -> UUID:
    with scope(owner):
        session = await unit(owner, _open, told.off_record)
        for message, _ in told.turns:
            await _answer(owner, message, session)
            move(BETWEEN)
        await turn.drain()  # titles and the like are still on their way
        if not told.left_open:
            await conduct.end(session=session)
    return session


def _open(off_record: bool) -> UUID:
    return actions.open_session(close_previous=True, off_record=off_record)


async def _answer(owner: Scope, message: str, session: UUID | None = None) -> tuple[UUID, UUID, Event]:
    """(session, turn, its answer)."""
    said = await conduct.say(text=message, client_key=str(uuid7()), session=session)
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_SECONDS
    while loop.time() < until:
        for event in reversed(await unit(owner, log.load, said.session)):
            if event.turn == said.turn.id and event.kind == kinds.TURN_FAILED:
                raise Broken(f"no answer: {event.payload['code']}")
            if event.turn == said.turn.id and event.kind == kinds.ASSISTANT_TURN:
                return said.session, said.turn.id, event
        await asyncio.sleep(0.02)
    raise Broken("no answer came")


def _afterwards(one: Played, place: int) -> None:
    told, session = one.case.session[place], one.sessions[place]
    one.states[place] = queries.state_of(session)
    one.wrap_ups[place] = found = queries.wrap_up_of(session)
    if found is None:
        return
    if told.edit is not None:
        wrapups.edit(found.id, _edit(found, told.edit), by=one.owner.customer_id or UUID(int=0))
        one.wrap_ups[place] = queries.wrap_up_of(session)
    if told.deleted:
        wrapups.delete(found.id, by=one.owner.customer_id or UUID(int=0))
        one.states[place] = queries.state_of(session)


def _edit(found: WrapUp, edited: Edited) -> wrapups.Edit:
    def kept(items: Sequence[queries.WrapUpItem]) -> list[wrapups.EditedItem]:
        return [wrapups.EditedItem(item.text, item.id) for item in items]

    return wrapups.Edit(
        summary=found.summary if edited.summary is None else edited.summary,
        decisions=kept(found.decisions),
        open_items=kept(found.open_items),
        new_context=kept(found.new_context),
        next_session_note=found.next_session_note
        if edited.next_session_note is None
        else edited.next_session_note,
    )


def _follow_up(one: Played) -> None:
    one.last, _, answer = asyncio.run(_in_scope(one.owner, one.case.follow_up.say))
    one.answer = kinds.text_of(answer)
    stated = [event for event in log.load(one.last) if event.kind in kinds.PROMPT_KINDS]
    one.prompt = "\n".join(str(section["text"]) for section in kinds.sections_of(stated[-1]))


async def _in_scope(owner: Scope, message: str) -> tuple[UUID, UUID, Event]:
    with scope(owner):
        answer = await _answer(owner, message)
        await turn.drain()
        return answer
