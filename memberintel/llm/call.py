"""One call of one model: deadlines, typed errors, and the ledger row that is written however it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import StringIO
from typing import Literal
from uuid import UUID

from memberintel.lib import clock, tokens
from memberintel.lib.text import encodable
from memberintel.llm import prices
from memberintel.llm.backends.base import Backend, RawDelta, Request, UsageSoFar
from memberintel.llm.errors import InvalidOutput, ModelError, TimedOut, Unavailable
from memberintel.llm.types import Delta, Embeddings, Finished, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.usage import actions
from memberintel.usage.actions import CallRecord

log = logging.getLogger(__name__)

Outcome = Literal["complete", "invalid", "failed", "cancelled"]

# Rows being written, held so that a cancelled caller cannot take them along.
_writing: set[asyncio.Task[None]] = set()


@dataclass(frozen=True)
class Purse:
    """Who a call is for and what it belongs to: the columns of the ledger that the caller knows."""

    scope: Scope
    session: UUID | None
    turn: UUID | None


@dataclass(frozen=True)
class Deadlines:
    """Seconds to the first piece and between pieces (`silence`), and the loop time at which all must be over."""

    silence: float
    ends_at: float

    def left(self) -> float:
        """Seconds until the end; negative when it has passed."""
        return self.ends_at - time.monotonic()


@dataclass
class Call:
    """One call as it goes on. Used once: `pieces` (or `embed`), then `settle`."""

    backend: Backend
    request: Request
    purse: Purse
    attempt: int
    deadlines: Deadlines
    digest: str
    request_bytes: int
    started_at: datetime = field(default_factory=clock.now)
    began: bool = False
    finished: Finished | None = None
    error: ModelError | None = None
    outcome: Outcome = "cancelled"  # what it is until it comes to an end
    usage: Usage | None = None
    _started: float = field(default_factory=time.monotonic)
    _heard: StringIO = field(default_factory=StringIO)
    _settled: bool = False

    async def pieces(self) -> AsyncGenerator[Delta]:
        """The answer, piece by piece, up to and with Finished. Raises ModelError alone.

        The caller closes it (`aclosing`) and then calls `settle`.
        """
        try:
            async with aclosing(self.backend.stream(self.request)) as raw:
                while (delta := await self._next(raw)) is not None:
                    if isinstance(delta, UsageSoFar):
                        self.usage = delta.usage
                        continue
                    if isinstance(delta, TextDelta | ReasoningDelta):
                        delta = replace(delta, text=encodable(delta.text))
                    elif isinstance(delta, ToolCallDelta):
                        delta = ToolCallDelta(replace(delta.call, arguments=encodable(delta.call.arguments)))
                    self._note(delta)
                    yield delta
                    if self.finished is not None:
                        return
            raise Unavailable(reason="ended early")
        except ModelError as error:
            self._fail(error)
            raise
        except Exception as error:
            raise self._unexpected(error) from None

    async def whole(self) -> str:
        """The text of the whole answer; `finished` is set afterwards. Raises ModelError alone."""
        async with aclosing(self.pieces()) as pieces:
            return "".join([delta.text async for delta in pieces if isinstance(delta, TextDelta)])

    def is_invalid(self) -> InvalidOutput:
        """Marks a call that ended well as of no use, because its answer has the wrong shape."""
        self.outcome, self.error = "invalid", InvalidOutput(reason="schema")
        return self.error

    async def embed(self, texts: list[str]) -> Embeddings:
        """The vectors of `texts`. Raises ModelError alone."""
        try:
            async with asyncio.timeout(max(0.0, self.deadlines.left())):
                found = await self.backend.embed(self.request.model, texts)
        except TimeoutError:
            raise self._fail(TimedOut(reason="no end")) from None
        except ModelError as error:
            self._fail(error)
            raise
        except Exception as error:
            raise self._unexpected(error) from None
        self.usage, self.outcome = found.usage, "complete"
        return found

    async def settle(self) -> None:
        """Writes the ledger row, once. It is written to its end also when the caller is cancelled meanwhile."""
        if self._settled:
            return
        self._settled = True
        task = asyncio.create_task(self._write())
        _writing.add(task)
        task.add_done_callback(_writing.discard)
        await asyncio.shield(task)

    async def _next(self, raw: AsyncGenerator[RawDelta]) -> RawDelta | None:
        """The next piece, or None when the stream just ends. TimedOut after silence or at the deadline."""
        left = self.deadlines.left()
        try:
            # Around one step only: a timeout must never strike the code that consumes the pieces.
            async with asyncio.timeout(max(0.0, min(self.deadlines.silence, left))):
                return await anext(raw, None)
        except TimeoutError:
            if left <= self.deadlines.silence:
                raise TimedOut(reason="no end") from None
            raise TimedOut(reason="stalled" if self.began else "no first piece") from None

    def _note(self, delta: Delta) -> None:
        self.began = True
        if isinstance(delta, Finished):
            self.finished, self.usage, self.outcome = delta, delta.usage, "complete"
        elif isinstance(delta, TextDelta | ReasoningDelta):
            self._heard.write(delta.text)
        elif isinstance(delta, ToolCallDelta):
            self._heard.write(delta.call.arguments)

    def _fail(self, error: ModelError) -> ModelError:
        self.error, self.outcome = error, "failed"
        return error

    def _unexpected(self, error: Exception) -> ModelError:
        # The type alone: the text of a foreign exception may hold the prompt or the key.
        log.error("model backend %s raised %s", self.backend.name, type(error).__name__)
        return self._fail(Unavailable(reason="unexpected"))

    async def _write(self) -> None:
        duration = round((time.monotonic() - self._started) * 1000)
        usage, estimated = await self._spent()
        record = self._record(usage, estimated, duration)
        log.info(
            "model call purpose=%s provider=%s model=%s outcome=%s error=%s ms=%d in=%d out=%d cached=%d",
            record.purpose, record.provider, record.model, record.outcome, record.error_code, duration,
            usage.input_tokens, usage.output_tokens, usage.cached_tokens,
        )  # fmt: skip
        try:
            await unit(self.purse.scope, actions.record_call, record)
        except Exception as error:
            # An answer is not lost because its row could not be written; staff see the line.
            log.error("ledger row not written: %s", type(error).__name__)

    async def _spent(self) -> tuple[Usage, bool]:
        """What the call used, and whether that had to be estimated because it was cut off."""
        if self.finished is not None or self.outcome == "complete":
            return self.usage or Usage(), False
        if not self.began:
            return self.usage or Usage(), False
        heard = await asyncio.to_thread(tokens.count, self._heard.getvalue())
        if self.usage is not None:
            return Usage(
                self.usage.input_tokens,
                max(self.usage.output_tokens, heard),
                self.usage.cached_tokens,
                self.usage.cache_write_tokens,
            ), True
        return Usage(await asyncio.to_thread(self.request.prompt.estimate), heard), True

    def _record(self, usage: Usage, estimated: bool, duration: int) -> CallRecord:
        provider, model = self.backend.name, self.finished.model if self.finished else self.request.model
        return CallRecord(
            session=self.purse.session,
            turn=self.purse.turn,
            purpose=self.request.purpose,
            provider=provider,
            model=model,
            attempt=self.attempt,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            estimated=estimated,
            cost_micros=prices.cost_micros(provider, model, usage, self.started_at.date()),
            outcome=self.outcome,
            error_code=self.error.code if self.error else "",
            error_reason=self.error.reason if self.error else "",
            request_digest=self.digest,
            request_bytes=self.request_bytes,
            started_at=self.started_at,
            duration_ms=duration,
        )


async def rows_written() -> None:
    """Waits for ledger rows still being written: for a process that is about to leave."""
    while _writing:
        await asyncio.wait(set(_writing))
