"""Keeping a conversation within the window of its model: asks for summaries and puts them in the log.

Before a provider is called, so that what is sent fits; and after an answer is durable, so that the next turn
need not wait. `sessions.domain.compaction` decides; nothing here looks at a text to decide.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from traceback import format_tb
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError

from brain import prompt as frozen_prompt
from brain.domain.prompt import SectionRequest
from memberintel.lib.extract import Line
from memberintel.lib.text import clean
from memberintel.llm import seam, windows
from memberintel.llm.errors import ModelError
from memberintel.llm.types import Message, Prompt, StopReason
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import CannotOpen
from sessions import log, queries, toolbox
from sessions.domain import compaction, marks, projection
from sessions.domain import events as kinds
from sessions.domain.compaction import Cut, Fits, Limits, Source
from sessions.domain.events import Event, Method
from sessions.domain.weights import Weights, part_weights, summary_weight, weigh
from sessions.log import Lease, Overtaken, Turn

logger = logging.getLogger(__name__)

VERSION: Final = "compact-1"  # a changed text is a new file and a new name
WORDS_A_TOKEN: Final = 0.6
SHARE_OF_WINDOW: Final = 0.6  # of the summariser's own; the rest is for tokenizers that count otherwise
OVERHEAD_TOKENS: Final = 1_000  # the instructions, and what stands around the transcript

SUMMARISING: Final = "This conversation has grown long: its older part is being summarised first."
PICKED: Final = (
    "This conversation has grown too long to be read at once, and no summary could be written just now. The advisor"
    " goes on with sentences picked from its older part. The conversation itself is kept whole."
)

_LARGE: Final = {
    "message": ("your message", "Please send it again in smaller parts."),
    "recall": ("what was recalled for your message", "Please go on in a new conversation."),
    "turns": ("the newest messages of this conversation", "Please go on in a new conversation."),
    "summary": ("the summary of this conversation so far", "Please go on in a new conversation."),
    "pending": ("what the tools brought for this answer", "Please ask for less at once."),
    "soul": ("your SOUL document", "Please shorten it, then go on in a new conversation."),
    "bible": ("your BIBLE document", "Please shorten it, then go on in a new conversation."),
    "heartbeat": ("the figures of your site", "Please tell our staff."),
    "wrap_ups": (
        "the notes from your last conversations",
        "Please delete what is out of date in them, then go on in a new conversation.",
    ),
    "memory": (
        "what the advisor remembers of you",
        "Please delete what is out of date, then go on in a new conversation.",
    ),
}
_OURS: Final = ("the advisor's own instructions", "Please tell our staff; only they can change that.")


class RequestTooLarge(Exception):
    """The request does not fit the model, and no summary can change that. `message` is for a person."""

    code = "too_large"
    retryable = False

    def __init__(self, found: compaction.TooLarge) -> None:
        self.part = found.part
        name, advice = _LARGE.get(found.part, _OURS)
        self.message = (
            f"The advisor can read about {found.limit:,} tokens at once, and this request has {found.total:,}."
            f" The largest part is {name}, with {found.tokens:,}. {advice} Everything said so far is kept."
        )
        super().__init__(f"{self.code} ({found.part})")


@dataclass(frozen=True, slots=True)
class Made:
    """A summary that may take the place of what it was made from."""

    text: str
    method: Method
    weight: int


def _unheard(_: str) -> None:
    """The default of `Compactor.notice`: nobody is listening."""


@dataclass(slots=True)
class Compactor:
    """The compactions of one turn: at most three passes, and one deadline for all those before the answer.

    `turn` is the running turn whose lease is held, None outside of one. `notice` tells the waiting person
    something, in one sentence.
    """

    scope: Scope
    session: UUID
    turn: Turn | None = None
    notice: Callable[[str], None] = _unheard
    passes: int = 0
    weight: Weights = field(default_factory=Weights)
    _fresh: kinds.Draft | None = None

    async def fit(self, events: list[Event], pending: int = 0) -> list[Event]:
        """The live part of the log, compacted until its request fits; the same list when it does already.

        `pending` is the tokens of what the running answer has so far, if the request carries it. Raises
        RequestTooLarge, LeaseLost, SessionClosed, CannotOpen, and ModelError when no model is set up.
        """
        limits = await _limits()
        self.weight = weigh(events, pending)
        if self.weight.total <= limits.line:
            return events
        until = asyncio.get_running_loop().time() + settings.TURN_DEADLINES["compact"]
        if await _other_finished(self.session, until):
            events = await self._load(pending)
        while isinstance(step := self._plan(events, limits), Cut):
            if not await self._pass(step, events, limits, until, needed=self.weight.total > limits.full):
                return events
            events = await self._load(pending)
        if not isinstance(step, Fits):
            logger.error("a request is too large: %s", step.part)
            raise RequestTooLarge(step)
        return events

    async def tidy(self) -> None:
        """After the answer: compact if the next request would cross the line. What fails is left as it is."""
        limits = await _limits()
        until = asyncio.get_running_loop().time() + settings.TURN_DEADLINES["compact"]
        events = await self._load()
        while isinstance(step := self._plan(events, limits), Cut):
            if not await self._pass(step, events, limits, until, needed=False):
                return
            events = await self._load()

    def _plan(self, events: list[Event], limits: Limits) -> compaction.Step:
        return compaction.plan(events, self.weight, limits, passes=self.passes)

    async def _load(self, pending: int = 0) -> list[Event]:
        events = await unit(self.scope, log.load_live, self.session)
        self.weight = weigh(events, pending)
        return events

    async def _pass(
        self, cut: Cut, events: list[Event], limits: Limits, until: float, *, needed: bool
    ) -> bool:
        """One pass: whether the log has another summary now. `needed` when the request would not fit else."""
        if not needed and _resting.get(self.session, 0) > time.monotonic():
            return False
        self.passes += 1
        if self.passes == 1:
            self.notice(SUMMARISING)
        said = await unit(self.scope, _source, self.session, events, cut)
        made = await self._summarised(said, cut, until)
        if made is None and needed:
            made = await asyncio.to_thread(_stand_in, said, cut)
            if made is None:
                raise RequestTooLarge(compaction.too_large(self.weight, limits))
            self.notice(PICKED)
        if made is None:
            _rest(self.session)
            return False
        _resting.pop(self.session, None)
        return await self._apply(made, cut, events)

    # --- asking ------------------------------------------------------------------------------------------

    async def _summarised(self, said: Source, cut: Cut, until: float) -> Made | None:
        """What the model makes of it, if it may be used; its failures are logged and never raised."""
        try:
            async with asyncio.timeout_at(until):
                text, stop_reason = await self._ask(said, cut)
        except (ModelError, TimeoutError) as error:
            logger.warning("a conversation was not summarised: %s", type(error).__name__)
            return None
        weight = await asyncio.to_thread(summary_weight, text, "model")
        if fault := compaction.fault(text, stop_reason=stop_reason, weight=weight, cut=cut):
            logger.warning("a summary was not used: %s", fault)
            return None
        return Made(text, "model", weight)

    async def _ask(self, said: Source, cut: Cut) -> tuple[str, StopReason]:
        """The summary; part by part, each on top of the one before, when it is too much for one reading."""
        room = int(await windows.window("compact") * SHARE_OF_WINDOW) - OVERHEAD_TOKENS - 2 * cut.room
        text = said.earlier
        stop_reason: StopReason = "end"
        for part in await asyncio.to_thread(compaction.parts, said, max(room, 400)):
            answer = await seam.complete(
                "compact",
                request(text, part, words=int(cut.room * WORDS_A_TOKEN)),
                scope=self.scope,
                session=self.session,
                turn=self.turn.id if self.turn else None,
            )
            text, stop_reason = clean(answer.text).strip(), answer.stop_reason
            if not text or stop_reason != "end":
                break
        return text, stop_reason

    # --- writing -----------------------------------------------------------------------------------------

    async def _apply(self, made: Made, cut: Cut, events: list[Event]) -> bool:
        """Append the summary and the prompt anew, in one piece. True also when another one was a moment
        faster: then that one bounds the history."""
        refreshed = await self._fresh_prompt(events) if projection.prompt_event(events) else None
        before = self.weight.total
        system = sum(weight for _, weight in self.weight.sections)
        parts: list[kinds.SectionDigest] = refreshed.payload["sections"] if refreshed else []
        fresh = sum(part.get("tokens", 0) for part in parts) if refreshed else system
        drafts = [
            kinds.compaction_applied(
                replaces_through_seq=cut.through,
                summary=made.text,
                method=made.method,
                tokens_before=before,
                tokens_after=before - cut.replaces + made.weight - system + fresh,
                tokens=made.weight,
            )
        ]
        if refreshed:
            drafts.append(refreshed)
        try:
            await unit(self.scope, self._append, drafts, cut.planned_from)
        except Overtaken:
            logger.info("a summary was not used: another one came first")
        return True

    def _append(self, drafts: Sequence[kinds.Draft], planned_from: int | None) -> None:
        how = Lease.HOLD if self.turn else Lease.NONE
        log.append_compaction(self.session, drafts, expecting=planned_from, turn=self.turn, lease=how)

    async def _fresh_prompt(self, events: list[Event]) -> kinds.Draft:
        """The system prompt built anew, once a turn, as it was when it was frozen; with the tools there are now."""
        if self._fresh is None:
            row = await unit(self.scope, queries.get_session, self.session)
            built = await frozen_prompt.whole(self._section_request(events, row.continues if row else None))
            self._fresh = kinds.prompt_refreshed(
                sections=part_weights((part.name, part.digest, part.text) for part in built.parts),
                tools=toolbox.definitions(off_record=row is not None and row.off_record),
                late=built.late,
            )
        return self._fresh

    def _section_request(self, events: list[Event], continues: UUID | None) -> SectionRequest:
        asked = [event for event in events if event.kind == kinds.USER_MESSAGE]

        async def notice(text: str) -> None:
            self.notice(text)

        return SectionRequest(
            tenant_id=self.scope.tenant_id,
            customer_id=self.scope.customer_id or UUID(int=0),
            session_id=self.session,
            continues=continues,
            text=kinds.text_of(asked[-1]) if asked else "",
            notice=notice,
        )


async def _limits() -> Limits:
    window = await windows.window("chat")
    return Limits(line=int(window * settings.COMPACT_ABOVE), full=int(window * settings.REQUEST_UP_TO))


def _source(session: UUID, events: list[Event], cut: Cut) -> Source:
    """What the summary is made from: the live turns on top of the earlier summary, or the raw log again when
    that was no summary of a model's."""
    newest = projection.newest_compaction(events)
    if not compaction.needs_raw_log(newest):
        after, earlier = projection.live_start(events) - 1, kinds.text_of(newest, "summary") if newest else ""
        return compaction.source(events, after=after, through=cut.through, earlier=earlier)
    base = log.newest_summary(session)
    after = int(base.payload["replaces_through_seq"]) if base else 0
    earlier = kinds.text_of(base, "summary") if base else ""
    raw = log.load(session, after=after, through=cut.through)
    return compaction.source(raw, after=after, through=cut.through, earlier=earlier)


def _stand_in(said: Source, cut: Cut) -> Made | None:
    text = compaction.extractive(said, cut)
    return None if text is None else Made(text, "extractive", summary_weight(text, "extractive"))


@cache
def _instructions() -> str:
    return (Path(__file__).parent / "prompts" / f"{VERSION}.txt").read_text().strip()


def request(earlier: str, lines: Sequence[Line], *, words: int) -> Prompt:
    """What the summariser is asked."""
    said = compaction.transcript(lines)
    if earlier:
        said = f"<earlier_summary>\n{marks.escape(earlier)}\n</earlier_summary>\n{said}"
    return Prompt((_instructions().replace("{words}", str(words)),), (Message("user", said),))


# A summariser that failed is not asked again for a while by a conversation that fits without it: people would
# wait for its deadline with every message.
_resting: dict[UUID, float] = {}


def _rest(session: UUID) -> None:
    now = time.monotonic()
    for known, until in list(_resting.items()):
        if until <= now:
            del _resting[known]
    _resting[session] = now + settings.COMPACT_AGAIN_AFTER_SECONDS


# --- after the answer ------------------------------------------------------------------------------------

_tidying: dict[UUID, asyncio.Task[None]] = {}


async def tidy_later(work: Compactor, added: int) -> None:
    """Once an answer of `added` tokens is durable: start compacting beside whatever comes next, if it is due.

    The turn is over, so its lease no longer counts; what is appended is guarded by the newest compaction alone.
    """
    try:
        if work.weight.total + added <= (await _limits()).line or work.session in _tidying:
            return
    except ModelError:
        return
    work.turn, work.notice, work._fresh = None, _unheard, None
    task = _tidying[work.session] = asyncio.create_task(_tidy(work))
    task.add_done_callback(lambda _: _tidying.pop(work.session, None))


async def _tidy(work: Compactor) -> None:
    try:
        await work.tidy()
    except (log.LogError, ModelError, CannotOpen, OperationalError, InterfaceError) as error:
        logger.warning("a conversation was not compacted after its answer: %s", type(error).__name__)
    except Exception as error:
        # Nobody waits for this task. Type and places alone: an exception's text may quote what a person wrote.
        places = "".join(format_tb(error.__traceback__))
        logger.error("compacting after an answer failed: %s\n%s", type(error).__name__, places)


async def _other_finished(session: UUID, until: float) -> bool:
    """Wait for the compaction after the last answer, if it still runs here: it does the same work."""
    task = _tidying.get(session)
    if task is None:
        return False
    await asyncio.wait({task}, timeout=until - asyncio.get_running_loop().time())
    return True


async def drain() -> None:
    """Give up what was begun after an answer: the process leaves, and the next turn does it itself."""
    tasks = list(_tidying.values())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
