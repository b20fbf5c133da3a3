"""Writes one wrap-up: claim the job, ask the model, record. No transaction is open while a model thinks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings

from memberintel.accounts.queries import person
from memberintel.lib import clock
from memberintel.lib.extract import Line
from memberintel.llm import windows
from memberintel.llm.errors import ModelError
from memberintel.llm.seam import complete
from memberintel.llm.types import Completion
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import Damaged, KeyDestroyed, VaultError
from sessions import queries as sessions
from wrapups import jobs, prompting
from wrapups.domain.draft import CAP_WORDS, AskShorter, Draft, Keep, WrapUpOutput, merge, validate
from wrapups.jobs import Busy, Claim, LeaseLost, Provenance
from wrapups.prompting import Said

logger = logging.getLogger(__name__)

_ANSWER_KEPT = 20_000  # characters of a too long answer that are shown to the model again


class NoWrapUp(Exception):
    """No valid wrap-up came of it. `code` says why, without content."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


@dataclass(frozen=True)
class Written:
    """The wrap-up is stored."""


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


Outcome = Written | Later | Failed | NotOurs


async def write(job: UUID, scope: Scope) -> Outcome:
    """Do the owed work once. What goes wrong with model, answer or keys is recorded on the job and returned."""
    held = await unit(scope, jobs.claim, job, clock.now())
    if held is None:
        return NotOurs()
    if isinstance(held, Busy):
        return Later(held.seconds + 1)
    try:
        return await _while_held(held, scope)
    except LeaseLost:
        return NotOurs()
    except (ModelError, NoWrapUp) as error:
        retryable = error.retryable if isinstance(error, ModelError) else True
        return await _failed(held, scope, error.code, retryable=retryable)
    except (Damaged, KeyDestroyed):
        return await _failed(held, scope, "cannot_open", retryable=False)
    except VaultError:
        return await _failed(held, scope, "key_unavailable", retryable=True, keep_queued=True)


async def _failed(
    held: Claim, scope: Scope, code: str, *, retryable: bool, keep_queued: bool = False
) -> Outcome:
    logger.warning("wrap-up not written: job %s, attempt %d, %s", held.job, held.attempt, code)
    wait = await unit(
        scope, jobs.give_up, held, code, clock.now(), retryable=retryable, keep_queued=keep_queued
    )
    return Failed(code) if wait is None else Later(wait)


async def _while_held(held: Claim, scope: Scope) -> Outcome:
    """The work, while a second task renews the lease; it is cancelled when the lease is lost."""
    work = asyncio.create_task(_work(held, scope))
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


async def _work(held: Claim, scope: Scope) -> Outcome:
    said, zone = await unit(scope, _material, held.session)
    if not said:
        raise NoWrapUp("no_transcript")
    stretches = prompting.parts(said, await windows.window("wrap_up"))
    cap = CAP_WORDS // len(stretches)
    drafts = [await _ask(stretch, zone, cap, held, scope) for stretch in stretches]
    draft = merge([draft for draft, _ in drafts]) if len(drafts) > 1 else drafts[0][0]
    by = Provenance(drafts[-1][1], prompting.VERSION)
    await unit(scope, jobs.record, held, draft, by, clock.now())
    return Written()


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
            raise NoWrapUp(intent.code)
        prompt = prompting.tighter(first, answer.text[:_ANSWER_KEPT], intent.words, cap)


def _output(answer: Completion[WrapUpOutput]) -> WrapUpOutput:
    if answer.output is None:
        raise NoWrapUp("no_output")
    return answer.output
