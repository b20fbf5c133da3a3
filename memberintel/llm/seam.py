"""The only way to a model: complete, stream, embed.

A call names its purpose; settings say which models serve it and how long it may take. Every call of a
provider leaves a row in the ledger, also when it failed or was cancelled. All that is raised is a ModelError.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from hashlib import sha256
from secrets import SystemRandom
from typing import Any, overload
from uuid import UUID

from django.conf import settings
from pydantic import BaseModel

from memberintel.llm import routes, structured
from memberintel.llm.backends.base import Request
from memberintel.llm.backends.registry import backend
from memberintel.llm.call import Call, Deadlines, Purse
from memberintel.llm.errors import ModelError
from memberintel.llm.policy import GiveUp, Patience, Repeat, after_failure
from memberintel.llm.types import Completion, Delta, Embeddings, Finished, Message, Prompt
from memberintel.tenancy.context import Scope

_random = SystemRandom()


class _Attempts:
    """Walks the purpose's chain of models, repeating what may be repeated, until its deadline."""

    def __init__(self, purpose: str, purse: Purse) -> None:
        self.purpose, self.purse = purpose, purse
        self.chain = routes.chain(purpose)
        self.deadlines = Deadlines(
            silence=settings.LLM_SILENCE.get(purpose, settings.LLM_SILENCE_DEFAULT),
            ends_at=time.monotonic() + settings.LLM_DEADLINES[purpose],
        )
        self.place = 0
        self.tries = 0
        self.calls = 0

    def call(
        self, prompt: Prompt, output: type[BaseModel] | None = None, *, answer_only: bool = False
    ) -> Call:
        """A fresh call of the model whose turn it is."""
        self.tries += 1
        self.calls += 1
        route = self.chain[self.place]
        wire = prompt.wire()
        return Call(
            backend=backend(route.provider),
            request=Request(
                self.purpose,
                route.model,
                prompt,
                output,
                answer_only=answer_only,
                **settings.LLM_OPTIONS.get(self.purpose, {}),
            ),
            purse=self.purse,
            attempt=self.calls,
            deadlines=self.deadlines,
            digest=sha256(wire).hexdigest(),
            request_bytes=len(wire),
        )

    async def failed(self, error: ModelError) -> None:
        """Returns when another call should be made, having waited; else raises the error."""
        step = after_failure(
            error,
            tries=self.tries,
            models_left=len(self.chain) - self.place - 1,
            seconds_left=self.deadlines.left(),
            patience=Patience(**settings.LLM_PATIENCE),
            jitter=_random.random(),
        )
        if isinstance(step, GiveUp):
            raise error
        if isinstance(step, Repeat):
            await asyncio.sleep(step.seconds)
        else:
            self.place, self.tries = self.place + 1, 0


async def stream(
    purpose: str,
    prompt: Prompt,
    *,
    scope: Scope,
    session: UUID | None = None,
    turn: UUID | None = None,
    answer_only: bool = False,
) -> AsyncGenerator[Delta]:
    """The answer, piece by piece; Finished comes once and last, when its ledger row is written.

    `answer_only`: the model is not to call the prompt's tools.

    Repeats and falls back only before the first piece: afterwards the error is raised, what came stays valid.
    Close it (`contextlib.aclosing`) to cancel: that closes the provider's connection and settles the ledger.
    """
    attempts = _Attempts(purpose, Purse(scope, session, turn))
    while True:
        call = attempts.call(prompt, answer_only=answer_only)
        try:
            async with aclosing(call.pieces()) as pieces:
                async for delta in pieces:
                    if isinstance(delta, Finished):
                        await call.settle()
                    yield delta
            return
        except ModelError as error:
            if call.began:
                raise
            failure = error
        finally:
            await call.settle()
        await attempts.failed(failure)


@overload
async def complete(
    purpose: str, prompt: Prompt, *, scope: Scope, session: UUID | None = None, turn: UUID | None = None
) -> Completion[None]: ...


@overload
async def complete[T: BaseModel](
    purpose: str,
    prompt: Prompt,
    *,
    scope: Scope,
    output: type[T],
    session: UUID | None = None,
    turn: UUID | None = None,
) -> Completion[T]: ...


async def complete(
    purpose: str,
    prompt: Prompt,
    *,
    scope: Scope,
    output: type[BaseModel] | None = None,
    session: UUID | None = None,
    turn: UUID | None = None,
) -> Completion[Any]:
    """The whole answer. With `output` it is JSON of that shape, validated; InvalidOutput when it is not, also
    after one repair for which the model was told what is wrong."""
    attempts = _Attempts(purpose, Purse(scope, session, turn))
    asked = prompt
    while True:
        call = attempts.call(asked, output)
        try:
            text = await call.whole()
            read = structured.read(output, text) if output is not None else None
            if not isinstance(read, structured.Problem):
                return _completion(call, text, read)
            invalid = call.is_invalid()
            if asked is not prompt:
                raise invalid
            asked = structured.repair(prompt, text, read)
            continue
        except ModelError as error:
            failure = error
        finally:
            await call.settle()
        await attempts.failed(failure)


async def embed(texts: Sequence[str], *, scope: Scope, purpose: str = "embed") -> Embeddings:
    """One vector for each text, in order. Vectors of different models must not be compared: keep `model`."""
    attempts = _Attempts(purpose, Purse(scope, None, None))
    prompt = Prompt((), tuple(Message("user", text) for text in texts))
    while True:
        call = attempts.call(prompt)
        try:
            return await call.embed(list(texts))
        except ModelError as error:
            failure = error
        finally:
            await call.settle()
        await attempts.failed(failure)


def _completion[T](call: Call, text: str, output: T | None) -> Completion[T]:
    finished = call.finished
    if finished is None:
        raise RuntimeError("a call that ended well has no Finished")
    return Completion(text, output, finished.usage, finished.model, finished.provider, finished.stop_reason)
