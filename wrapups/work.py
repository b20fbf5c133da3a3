"""Does one piece of owed work: claims it, has it made while the lease is renewed, records what came of it.

What is made is a matter of its kind (`wrapups.makers`). No transaction is open while a model thinks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from memberintel.lib import clock
from memberintel.llm.errors import ModelError
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import Damaged, KeyDestroyed, VaultError
from wrapups import jobs
from wrapups.jobs import Busy, Claim, LeaseLost, NoBudget, Store

logger = logging.getLogger(__name__)

UNEXPECTED = "unexpected"
"""The code of an error nobody thought of; the log has its type and place."""

Make = Callable[[Claim, Scope], Awaitable[Store]]
"""Does the slow part of a kind of work; gives what writes its result. Raises ModelError, NothingMade, VaultError."""


class NothingMade(Exception):
    """Nothing that may be stored came of it. `code` says why, without content."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


@dataclass(frozen=True)
class Written:
    """The result is stored."""


@dataclass(frozen=True)
class Later:
    """Not now: try again in so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Failed:
    """This attempt failed, and none is planned."""

    code: str


@dataclass(frozen=True)
class NotOurs:
    """Nothing is owed any more, or somebody else took it over."""


@dataclass(frozen=True)
class Unfunded:
    """The month's budget is used up; the backfill comes back to it when it is renewed."""


Outcome = Written | Later | Failed | NotOurs | Unfunded


async def do(job: UUID, scope: Scope, makers: Mapping[str, Make]) -> Outcome:
    """Do the owed work once. What goes wrong with model, answer or keys is recorded on the job and returned."""
    held = await unit(scope, jobs.claim, job, tuple(makers), clock.now())
    if held is None:
        return NotOurs()
    if isinstance(held, NoBudget):
        return Unfunded()
    if isinstance(held, Busy):
        return Later(held.seconds + 1)
    try:
        return await _while_held(held, scope, makers[held.kind])
    except LeaseLost:
        return NotOurs()
    except (ModelError, NothingMade) as error:
        retryable = error.retryable if isinstance(error, ModelError) else True
        return await _failed(held, scope, error.code, retryable=retryable)
    except (Damaged, KeyDestroyed):
        return await _failed(held, scope, "cannot_open", retryable=False)
    except VaultError:
        return await _failed(held, scope, "key_unavailable", retryable=True, keep_queued=True)
    except Exception:  # a mistake of ours: it must not keep the jobs after this one from being done
        logger.exception("%s not written: job %s", held.kind, held.job)
        return await _failed(held, scope, UNEXPECTED, retryable=True)


async def _failed(
    held: Claim, scope: Scope, code: str, *, retryable: bool, keep_queued: bool = False
) -> Outcome:
    logger.warning("%s not written: job %s, attempt %d, %s", held.kind, held.job, held.attempt, code)
    wait = await unit(
        scope, jobs.give_up, held, code, clock.now(), retryable=retryable, keep_queued=keep_queued
    )
    return Failed(code) if wait is None else Later(wait)


async def _while_held(held: Claim, scope: Scope, make: Make) -> Outcome:
    """The work, while a second task renews the lease; it is cancelled when the lease is lost."""
    work = asyncio.create_task(_work(held, scope, make))
    keeper = asyncio.create_task(_keep(held, scope, work))
    try:
        return await work
    except asyncio.CancelledError:
        if keeper.done() and not keeper.cancelled():
            raise LeaseLost(str(held.job)) from None
        work.cancel()
        raise
    finally:
        keeper.cancel()


async def _keep(held: Claim, scope: Scope, work: asyncio.Task[Outcome]) -> None:
    while True:
        await asyncio.sleep(settings.WRAP_UP_LEASE_SECONDS / 4)
        if not await unit(scope, jobs.renew, held, clock.now()):
            work.cancel()
            return


async def _work(held: Claim, scope: Scope, make: Make) -> Outcome:
    store = await make(held, scope)
    await unit(scope, jobs.record, held, store, clock.now())
    return Written()
