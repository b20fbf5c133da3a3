"""One turn: from a durable message to a durable answer. It belongs to the server, not to a connection.

A turn is an asyncio task that touches the database only in short units. Every two seconds it renews its
lease and saves what has come since; a process that lost the lease can write nothing more.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from traceback import format_tb
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError

from brain.domain.tools import ToolContext
from memberintel.lib.text import shorten
from memberintel.llm import seam
from memberintel.llm.call import rows_written
from memberintel.llm.errors import InvalidOutput, ModelError
from memberintel.llm.types import Message, Prompt
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.usage import charges
from memberintel.usage.models import Kind
from memberintel.vault.errors import CannotOpen
from sessions import briefing, compactor, distiller, lease, live, log, queries, relay, titler, toolbox
from sessions.domain import events as kinds
from sessions.domain import projection, rounds
from sessions.domain.events import Draft, Event
from sessions.domain.rounds import Answer, Unsaved
from sessions.log import Lease, LeaseLost, Turn

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 30.0
AWAY: Final = (OperationalError, InterfaceError, CannotOpen)
"""What is wrong with the installation for the moment, and not with the turn."""
AGAIN_SECONDS: Final = 0.3
SHOWN_CHARACTERS: Final = 2_000

MESSAGES: Final = {
    "locked": "Your saved conversation cannot be opened right now, so the advisor did not answer. Your message"
    " is kept. Our staff has been told; please try again later.",
    "internal": "Something went wrong on our side while answering. Your message and what was answered so far"
    " are kept; please try again.",
    "unsaved": "The end of this answer could not be saved. Your message and most of the answer are kept; please try"
    " again in a minute.",
    "shutdown": "The server was restarted while answering. Your message and what was answered so far are kept;"
    " please try again.",
}


@dataclass(slots=True)
class Job:
    """A running turn in this process."""

    scope: Scope
    session: UUID
    turn: Turn
    feed: live.Feed
    answer: Answer = field(default_factory=Answer)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    first: bool = False
    asked: str = ""
    context: ToolContext | None = None
    compactor: compactor.Compactor | None = None
    task: asyncio.Task[None] | None = None

    def notice(self, text: str) -> None:
        """Tell whoever waits, in one sentence."""
        self.feed.publish("notice", text=text)


_jobs: dict[UUID, Job] = {}
_loop: asyncio.AbstractEventLoop | None = None


def serve_on(loop: asyncio.AbstractEventLoop) -> None:
    """Name the event loop turns run on, for callers on other threads."""
    global _loop
    _loop = loop


def start(scope: Scope, session: UUID, turn: Turn) -> None:
    """Run the attempt whose lease was just taken, on the server's loop; returns at once. From any thread."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        if _loop is None:
            raise RuntimeError("no event loop serves turns in this process") from None
        _loop.call_soon_threadsafe(_start, scope, session, turn, context=contextvars.Context())
    else:
        loop.call_soon(_start, scope, session, turn, context=contextvars.Context())


def _start(scope: Scope, session: UUID, turn: Turn) -> None:
    job = Job(scope, session, turn, live.open_feed(turn.id, turn.attempt))
    _jobs[turn.id] = job
    job.task = asyncio.get_running_loop().create_task(_run(job))


async def stop(turn: UUID) -> None:
    """Ask the turn to stop if it runs in this process; another process reads the mark on the session."""
    if job := _jobs.get(turn):
        job.stop.set()


async def drain() -> None:
    """Let running turns finish for up to 30 s, then have the rest save what they have."""
    await compactor.drain()
    jobs = [job for job in _jobs.values() if job.task is not None]
    if not jobs:
        return
    tasks = [job.task for job in jobs if job.task]
    await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=settings.TURN_DEADLINES["persist"])
    await rows_written()


async def _run(job: Job) -> None:
    keeper = asyncio.create_task(_keep(job))
    relayed = asyncio.create_task(relay.publish(job.scope, job.feed))
    try:
        job.feed.publish(
            "turn",
            session=str(job.session),
            turn=str(job.turn.id),
            attempt=job.turn.attempt,
            text="",
            reasoning="",
        )
        await _until_ended(job)
    finally:
        job.over.set()
        await asyncio.gather(keeper, return_exceptions=True)
        job.feed.end()
        await asyncio.gather(relayed, return_exceptions=True)
        _jobs.pop(job.turn.id, None)


async def _until_ended(job: Job) -> None:
    work = asyncio.create_task(_generate(job))
    signals = [asyncio.create_task(event.wait()) for event in (job.stop, job.lost)]
    try:
        await asyncio.wait([work, *signals], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            await _cancel(work)
            await _stopped(job)
        else:
            await _ended(job, work.exception())
    except asyncio.CancelledError:  # the process leaves
        await _cancel(work)
        await _failed(job, "shutdown", MESSAGES["shutdown"], retryable=True)
    finally:
        for waiting in signals:
            waiting.cancel()


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- generating ------------------------------------------------------------------------------------------


async def _generate(job: Job) -> None:
    """Round after round, each request on top of the one before, until the model has answered."""
    events = await _briefed(job)
    job.compactor = compactor.Compactor(job.scope, job.session, job.turn, job.notice)
    since: tuple[Message, ...] = ()
    pending = 0
    for left in range(settings.TOOL_ROUNDS, -1, -1):
        events = await job.compactor.fit(events, pending)
        prompt = projection.provider_prompt(events).followed_by(*since)
        await _listen(job, prompt, answer_only=not left)
        if not job.answer.round.calls:
            return
        if not left:
            _refuse(job)
            return
        added = (job.answer.round.said(), await _use(job, events, prompt, last=left == 1))
        since += added
        pending += rounds.weight(*added)


async def _briefed(job: Job) -> list[Event]:
    async def notice(text: str) -> None:
        job.notice(text)

    found = await briefing.brief(job.scope, job.session, job.turn, notice)
    job.first = found.first
    job.asked = briefing.message_of(found.events, job.turn.id)
    return found.events


async def _listen(job: Job, prompt: Prompt, *, answer_only: bool) -> None:
    answer, feed = job.answer, job.feed
    answer.begin()
    stream = seam.stream(
        "chat", prompt, scope=job.scope, session=job.session, turn=job.turn.id, answer_only=answer_only
    )
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            if (seen := answer.take(delta)) is not None:
                feed.write(*seen)


async def _use(job: Job, events: list[Event], prompt: Prompt, *, last: bool) -> Message:
    """Run the tools of the round. The calls are durable first: of what a crash leaves, it is known that it was
    begun; and a process that lost its lease begins nothing."""
    answer = job.answer
    places = answer.call()
    for place in places:
        _show_call(job, place)
    await _save_surely(job)

    def ended(which: int, outcome: toolbox.Outcome) -> None:
        answer.called(places[which], outcome.text, error=outcome.error)
        _show_result(job, places[which])

    await toolbox.use(
        answer.round.calls,
        context=await _context(job, events),
        offered=frozenset(tool.name for tool in prompt.tools),
        ended=ended,
    )
    return answer.results(places, last=last)


async def _context(job: Job, events: list[Event]) -> ToolContext:
    """The turn as its tools are told of it."""
    if job.context is None:
        row = await unit(job.scope, queries.get_session, job.session)
        asked = [
            event.seq for event in events if event.kind == kinds.USER_MESSAGE and event.turn == job.turn.id
        ]
        job.context = ToolContext(
            tenant_id=job.scope.tenant_id,
            customer_id=job.scope.customer_id or UUID(int=0),
            session_id=job.session,
            turn_id=job.turn.id,
            message_seq=asked[0] if asked else 1,
            off_record=row is None or row.off_record,
        )
    return job.context


def _refuse(job: Job) -> None:
    """The model goes on calling tools although it was told to answer: what it has said must do."""
    for place in job.answer.call():
        outcome = toolbox.refused()
        job.answer.called(place, outcome.text, error=True)
        _show_call(job, place)
        _show_result(job, place)
    if not job.answer.text.strip():
        raise InvalidOutput(reason="only tools")


def _show_call(job: Job, place: int) -> None:
    call = job.answer.tools[place]
    job.feed.publish("tool", id=call["id"], name=call["name"], arguments=_glimpse(call["arguments"]))


def _show_result(job: Job, place: int) -> None:
    call = job.answer.tools[place]
    job.feed.publish(
        "tool", id=call["id"], name=call["name"], result=_glimpse(call["result"] or ""), error=call["error"]
    )


def _glimpse(text: str) -> str:
    """Enough for the page while the answer is written; the transcript has all of it."""
    return shorten(text[: 2 * SHOWN_CHARACTERS], SHOWN_CHARACTERS)


# --- how it ends -----------------------------------------------------------------------------------------


async def _ended(job: Job, error: BaseException | None) -> None:
    if error is None:
        await _complete(job)
    elif isinstance(error, LeaseLost | log.SessionClosed):
        _say_interrupted(job)
    elif isinstance(error, ModelError | compactor.RequestTooLarge):
        await _failed(job, error.code, error.message, retryable=error.retryable)
    elif isinstance(error, CannotOpen):
        logger.error("a turn could not open its session: %s", type(error).__name__)
        await _failed(job, "locked", MESSAGES["locked"], retryable=True)
    else:
        # Type and places alone: an exception's text may quote what a person wrote.
        logger.error("a turn failed: %s\n%s", type(error).__name__, "".join(format_tb(error.__traceback__)))
        await _failed(job, "internal", MESSAGES["internal"], retryable=True)


async def _complete(job: Job) -> None:
    draft = job.answer.ended("complete", await _findings(job))
    if await _persist(job, draft):
        job.feed.publish("done", outcome="complete")
        await _tidy(job, draft)
        if job.first:
            await titler.entitle(job.scope, job.session, job.turn.id)


async def _findings(job: Job) -> tuple[str, ...]:
    """What the tools found, unless somebody wants the turn to be over: the answer itself is complete."""
    if not job.answer.tools:
        return ()
    asking = asyncio.create_task(
        distiller.findings(
            job.scope,
            job.session,
            job.turn.id,
            asked=job.asked,
            tools=job.answer.tools,
            answer=job.answer.text,
        )
    )
    signals = [asyncio.create_task(event.wait()) for event in (job.stop, job.lost)]
    try:
        await asyncio.wait([asking, *signals], return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        logger.info("the process leaves: a turn is kept without findings")
    finally:
        for waiting in (asking, *signals):
            waiting.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    return () if asking.cancelled() or asking.exception() else asking.result()


async def _stopped(job: Job) -> None:
    if job.lost.is_set():
        _say_interrupted(job)
        return
    draft = job.answer.ended("stopped")
    if await _persist(job, draft):
        job.feed.publish("done", outcome="stopped")
        await _tidy(job, draft)


async def _tidy(job: Job, answer: Draft) -> None:
    if job.compactor is not None:
        await compactor.tidy_later(job.compactor, int(answer.payload["tokens"]))


async def _failed(job: Job, code: str, message: str, *, retryable: bool) -> None:
    try:
        await _save(job)
    except (LeaseLost, log.SessionClosed, *AWAY):
        logger.warning("the rest of an interrupted answer could not be saved")
    kept = await _persist(job, kinds.turn_failed(code=code, retryable=retryable, message=message))
    job.feed.publish("error", code=code, message=message, retryable=retryable, kept=kept)


def _say_interrupted(job: Job) -> None:
    job.feed.publish("error", **live.INTERRUPTED, kept=True)


async def _persist(job: Job, draft: Draft) -> bool:
    """Append the turn's last event, trying again while the database is away and the lease may still hold."""
    job.over.set()
    until = time.monotonic() + settings.TURN_DEADLINES["persist"]
    while True:
        try:
            async with job.saving:
                await _append(job, draft, Lease.RELEASE)
            return True
        except (log.SessionClosed, LeaseLost):
            _say_interrupted(job)
            return False
        except AWAY:
            if time.monotonic() > until:
                job.feed.publish(
                    "error", code="unsaved", message=MESSAGES["unsaved"], retryable=True, kept=False
                )
                return False
            await asyncio.sleep(AGAIN_SECONDS)


# --- saving while it runs --------------------------------------------------------------------------------


async def _keep(job: Job) -> None:
    """Every two seconds: save what came, renew the lease, hear whether to stop; until the turn is over."""
    while not await _over_within(job, settings.TURN_FLUSH_SECONDS):
        try:
            if await _save(job):
                job.stop.set()
        except (LeaseLost, log.SessionClosed):
            job.lost.set()
            return
        except AWAY:
            logger.warning("a pending answer could not be saved yet; trying again")


async def _over_within(job: Job, seconds: float) -> bool:
    try:
        await asyncio.wait_for(job.over.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def _save(job: Job) -> bool:
    """Save what came since the last time, or just renew the lease; whether a stop was asked for."""
    async with job.saving:
        mark = job.answer.mark()
        asked = await unit(job.scope, _save_now, job, job.answer.unsaved(mark))
        job.answer.saved(mark)
        return asked


async def _save_surely(job: Job) -> None:
    """As `_save`, trying again while the database is away; then what it raises."""
    until = time.monotonic() + settings.TURN_DEADLINES["persist"]
    while True:
        try:
            if await _save(job):
                job.stop.set()
            return
        except AWAY:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(AGAIN_SECONDS)


def _save_now(job: Job, unsaved: Unsaved | None) -> bool:
    if unsaved is not None:
        log.append(job.session, unsaved.draft(), turn=job.turn, lease=Lease.HOLD)
    return lease.renew(job.session, job.turn)


async def _append(job: Job, draft: Draft, how: Lease) -> int:
    return await unit(job.scope, _append_now, job, draft, how)


def _append_now(job: Job, draft: Draft, how: Lease) -> int:
    seq = log.append(job.session, draft, turn=job.turn, lease=how)
    if how is Lease.RELEASE and not (job.answer.text or job.answer.reasoning):
        charges.give_back(Kind.CHAT_TURN, job.turn.id)  # nothing came of it
    return seq
