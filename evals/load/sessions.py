"""Makes the sessions, and says what must come of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction

from memberintel.lib import clock, tokens
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.usage import charges
from memberintel.usage.models import Kind
from sessions import closing, log
from sessions.domain import events as kinds
from sessions.log import Turn
from sessions.models import CloseReason, Session
from wrapups import privacy
from wrapups.models import ClosingJob, JobKind, SessionLog

EACH: Final = 100  # sessions of one customer
TIERS: Final = ("pro", "free")
# What ten sessions in a row are: enough is said, too little, off the record, deleted before its notes were written.
SORTS: Final = ("said", "said", "trivial", "said", "off_record", "said", "said", "trivial", "deleted", "said")
PLAN = (
    "We decided to run a 20 % discount campaign for the yearly plan from 1 March. I'll write the e-mail to the"
    " members by Friday."
)
ADVICE = "That is a good start. You should look at the cancellation survey before you send it."


@dataclass(frozen=True)
class Held:
    """A session that was held, and of which sort it is."""

    who: Scope
    id: UUID
    sort: str


def hold(
    number: int,
    progress: Callable[[int], None] = lambda done: None,
    *,
    sorts: Sequence[str] = SORTS,
    tiers: Sequence[str] = TIERS,
) -> Iterator[Held]:
    """So many sessions of these sorts by turns, of customers of these tiers, all closed; what is to be deleted is."""
    who: Scope | None = None
    for done in range(number):
        if who is None or done % EACH == 0:
            who = _customer(tiers[done // EACH % len(tiers)])
        sort = sorts[done % len(sorts)]
        with scope(who):
            session = _session(sort, clock.now() - timedelta(minutes=number - done))
            if sort == "deleted":
                with transaction.atomic():
                    privacy.forget_session(session)
        yield Held(who, session, sort)
        progress(done + 1)


def _customer(tier: str) -> Scope:
    tenant = Tenant.objects.create(name="load", tier_id=tier)
    user = User.objects.create_user(f"load-{uuid4().hex[:12]}@example.com", tenant=tenant)
    return Scope(tenant.id, user.id)


def _session(sort: str, at: datetime) -> UUID:
    off = sort == "off_record"
    row = Session(started_at=at, ended_at=at, last_activity_at=at, off_record=off)
    row.save(force_insert=True)
    with transaction.atomic():
        log.append(row.id, kinds.session_opened(off_record=off, continues=None))
        turn, said = Turn(uuid7(), 1, "load"), "Hello!" if sort == "trivial" else PLAN
        log.append(row.id, kinds.user_message(text=said, tokens=tokens.count(said)), turn=turn)
        answer = kinds.assistant_turn(text=ADVICE, tokens=20, model="extractive", provider="offline")
        log.append(row.id, answer, turn=turn)
    closing.close(row.id, reason=CloseReason.ENDED, by="customer", now=clock.now())
    return row.id


# --- what must come of them ------------------------------------------------------------------------------


def expected(held: list[Held]) -> Counter[tuple[str, str]]:
    """How many of each sort end in which state: of what is written, as many as the tier's budget has."""
    found: Counter[tuple[str, str]] = Counter()
    for who in dict.fromkeys(each.who for each in held):
        sorts = Counter(each.sort for each in held if each.who == who)
        with scope(who):
            limit = charges.left(Kind.WRAP_UP).limit
        funded = sorts["said"] if limit is None else min(sorts["said"], limit)
        found["said", "done"] += funded
        found["said", "unfunded"] += sorts["said"] - funded
        for sort in ("trivial", "off_record", "deleted"):
            found[sort, sort] += sorts[sort]
    return +found


def outcome(held: list[Held]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many of each sort ended in which state, and what is wrong with single ones."""
    found: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for who in dict.fromkeys(each.who for each in held):
        own = [each for each in held if each.who == who]
        with scope(who):
            jobs = ClosingJob.objects.filter(kind=JobKind.WRAP_UP)
            states = dict(jobs.values_list("session_id", "state"))
            notes = Counter(SessionLog.objects.values_list("session_id", flat=True))
            used = charges.left(Kind.WRAP_UP).used
        for each in own:
            state = states.get(each.id, "none")
            found[each.sort, state] += 1
            if notes[each.id] != (state == "done"):
                wrong.append(f"{each.id}: {state}, and {notes[each.id]} wrap-ups")
        if used != sum(notes.values()):
            wrong.append(f"{who.tenant_id}: {used} charged for {sum(notes.values())} wrap-ups")
    return found, wrong
