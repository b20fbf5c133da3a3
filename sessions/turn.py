"""One turn: from a durable message to a durable answer. It belongs to the server, not to a connection.

A turn is an asyncio task that touches the database only in short units. Every two seconds it renews its
lease and saves what has come since; a process that lost the lease can write nothing more.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from traceback import format_tb
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError

from brain import prompt as frozen_prompt
from brain.domain.prompt import SectionRequest
from memberintel.lib import tokens
from memberintel.llm import seam
from memberintel.llm.call import rows_written
from memberintel.llm.errors import ModelError
from memberintel.llm.types import Finished, Prompt, ReasoningDelta, TextDelta
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import CannotOpen
from sessions import compactor, lease, live, log, relay, titler
from sessions.domain import events as kinds
from sessions.domain import projection
from sessions.domain.events import Draft, Event
from sessions.domain.weights import part_weights
from sessions.log import Lease, LeaseLost, Turn

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 30.0
AWAY: Final = (OperationalError, InterfaceError, CannotOpen)
"""What is wrong with the installation for the moment, and not with the turn."""
NO_TOOLS_DIGEST: Final = Prompt((), ()).digest()

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
class Answer:
    """What has been generated so far, and how much of it is saved."""

    text: str = ""
    reasoning: str = ""
    saved_text: int = 0
    saved_reasoning: int = 0
    finished: Finished | None = None

    def unsaved(self) -> Draft | None:
        """What came since the last flush, or None."""
        text, reasoning = self.text[self.saved_text :], self.reasoning[self.saved_reasoning :]
        if not text and not reasoning:
            return None
        return kinds.pending_state(text=text, reasoning=reasoning, tokens=tokens.count(text))


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
    compactor: compactor.Compactor | None = None
    task: asyncio.Task[None] | None = None


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
    prompt = projection.provider_prompt(await _fitting(job, await _prepare(job)))
    answer, feed = job.answer, job.feed
    stream = seam.stream("chat", prompt, scope=job.scope, session=job.session, turn=job.turn.id)
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                answer.text += delta.text
                feed.write("text", delta.text)
            elif isinstance(delta, ReasoningDelta):
                answer.reasoning += delta.text
                feed.write("reasoning", delta.text)
            elif isinstance(delta, Finished):
                answer.finished = delta


async def _prepare(job: Job) -> list[Event]:
    """The log, after the prompt was frozen in it: at the session's first turn, once."""
    events = await unit(job.scope, log.load_live, job.session)
    if any(event.kind in kinds.PROMPT_KINDS for event in events):
        return events
    job.first = True
    stored = await frozen_prompt.build(_request(job, events))
    sections = part_weights((part.name, part.digest, part.text) for part in stored)
    draft = kinds.context_frozen(sections=sections, tools_digest=NO_TOOLS_DIGEST)
    await _append(job, draft, Lease.HOLD)
    return await unit(job.scope, log.load_live, job.session)


async def _fitting(job: Job, events: list[Event]) -> list[Event]:
    """The log, after its older part was summarised in it if the request would be too large."""

    def notice(text: str) -> None:
        job.feed.publish("notice", text=text)

    job.compactor = compactor.Compactor(job.scope, job.session, job.turn, notice)
    return await job.compactor.fit(events)


def _request(job: Job, events: list[Event]) -> SectionRequest:
    opened = next((event for event in events if event.kind == kinds.SESSION_OPENED), None)
    continues = opened.payload.get("continues") if opened else None
    said = next((kinds.text_of(event) for event in events if event.kind == kinds.USER_MESSAGE), "")

    async def notice(text: str) -> None:
        job.feed.publish("notice", text=text)

    return SectionRequest(
        tenant_id=job.scope.tenant_id,
        customer_id=job.scope.customer_id or UUID(int=0),
        session_id=job.session,
        continues=UUID(continues) if continues else None,
        text=said,
        notice=notice,
    )


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
    draft = _assistant_turn(job, "complete")
    if await _persist(job, draft):
        job.feed.publish("done", outcome="complete")
        await _tidy(job, draft)
        if job.first:
            await titler.entitle(job.scope, job.session, job.turn.id)


async def _stopped(job: Job) -> None:
    if job.lost.is_set():
        _say_interrupted(job)
        return
    draft = _assistant_turn(job, "stopped")
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


def _assistant_turn(job: Job, outcome: kinds.Outcome) -> Draft:
    answer = job.answer
    return kinds.assistant_turn(
        text=answer.text,
        outcome=outcome,
        reasoning=answer.reasoning,
        tokens=tokens.count(answer.text),
        model=answer.finished.model if answer.finished else "",
        provider=answer.finished.provider if answer.finished else "",
    )


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
            await asyncio.sleep(0.3)


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
        text, reasoning = len(job.answer.text), len(job.answer.reasoning)
        draft = job.answer.unsaved()
        asked = await unit(job.scope, _save_now, job, draft)
        job.answer.saved_text, job.answer.saved_reasoning = text, reasoning
        return asked


def _save_now(job: Job, draft: Draft | None) -> bool:
    if draft is not None:
        log.append(job.session, draft, turn=job.turn, lease=Lease.HOLD)
    return lease.renew(job.session, job.turn)


async def _append(job: Job, draft: Draft, how: Lease) -> int:
    append: Callable[..., int] = log.append
    return await unit(job.scope, append, job.session, draft, turn=job.turn, lease=how)
