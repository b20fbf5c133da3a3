"""What the pages and the API do alike to a conversation: say, try again, stop, end, delete. In the
caller's scope.

Each of these may have to stop the answer that is being given first, which takes a moment and another process;
the short transactions themselves are in `sessions.actions`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from memberintel.tenancy.context import current_scope
from memberintel.tenancy.unit import unit
from sessions import actions, lease, live, queries, relay, turn
from sessions.actions import NotFound, Said
from sessions.log import Turn, TurnRunning

STOP_SECONDS = 3.0


async def say(
    *,
    text: str,
    client_key: str,
    session: UUID | None = None,
    close_previous: bool = False,
    interrupt: bool = False,
) -> Said:
    """Make the message durable and start its turn; with `interrupt` or `close_previous` the running answer is
    stopped first. Raises a Refusal, or TurnRunning."""
    stops = interrupt or close_previous
    while True:
        try:
            said = await _unit(
                actions.say,
                text=text,
                client_key=client_key,
                session=session,
                close_previous=close_previous,
            )
        except TurnRunning as running:
            if not stops or running.turn is None:
                raise
            await _unit(actions.check_budget)  # nothing is stopped for a message that is not taken
            await _stop_and_wait(running.turn)
            stops = False
            continue
        if not said.repeated:
            turn.start(current_scope(), said.session, said.turn)
        return said


async def retry(*, session: UUID, turn_id: UUID, attempt: int) -> tuple[Turn, bool, int]:
    """Answer the last message again, unless that was done: the attempt, whether it began now, and the number of
    its message in the log. Raises a Refusal, or TurnRunning."""
    following, began = await _unit(actions.retry, session=session, turn=turn_id, attempt=attempt)
    if began:
        turn.start(current_scope(), session, following)
    return following, began, await _unit(queries.message_seq, session, turn_id)


async def stop(*, session: UUID, turn_id: UUID) -> bool:
    """Ask the answer to stop, whichever process gives it; whether it was being given. NotFound."""
    if await _unit(queries.get_session, session) is None:
        raise NotFound("There is no such conversation.")
    stopping = await _unit(lease.ask_to_stop, session, turn_id)
    await turn.stop(turn_id)
    return stopping


async def end(*, session: UUID) -> bool:
    """End the session, its running answer first; False when it was closed already. NotFound."""
    await stop_in(session)
    return await _unit(actions.end, session=session)


async def delete(*, session: UUID) -> bool:
    """Delete the session whole, its running answer stopped first; False when it was deleted before. NotFound."""
    await stop_in(session)
    streams = await _unit(queries.newest_attempts, session)
    deleted = await _unit(actions.delete, session=session)
    if deleted:
        live.forget(streams)
        await relay.forget(streams)
    return deleted


async def open_session(*, close_previous: bool = False, off_record: bool = False) -> UUID:
    """Open a session by hand; with `close_previous` the open one ends first. Conflict otherwise."""
    if close_previous and (standing := await _unit(queries.open_session)):
        await stop_in(standing.id)
    return await _unit(actions.open_session, close_previous=close_previous, off_record=off_record)


async def stop_in(session: UUID) -> None:
    """Stop whatever runs in the session and wait until it has."""
    row = await _unit(queries.get_session, session)
    running = queries.running_turn(row) if row is not None else None
    if running is not None:
        await _stop_and_wait(running)


async def _stop_and_wait(which: UUID) -> None:
    """Stop the turn and wait until it has kept what it has; after three seconds it loses the right to write."""
    session = await _unit(queries.session_of_turn, which)
    if session is None:
        return
    await _unit(lease.ask_to_stop, session, which)
    await turn.stop(which)
    until = time.monotonic() + STOP_SECONDS
    while time.monotonic() < until:
        row = await _unit(queries.get_session, session)
        if row is None or queries.running_turn(row) != which:
            return
        await asyncio.sleep(0.05)
    await _unit(lease.revoke, session, which)


async def _unit[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await unit(current_scope(), work, *args, **kwargs)
