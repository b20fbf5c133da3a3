"""Following a turn, wherever it runs: from this process's memory, through Redis, or from what the log has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memberintel import threads
from memberintel.lib import sse
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from sessions import live, log, queries, relay
from sessions.domain import events as kinds
from sessions.domain.turns import Turn, fold

COMMENT_SECONDS: Final = 15.0
POLL_SECONDS: Final = 1.0
LAST: Final = ("done", "error")
FROM_LOG: Final = "log"
LONGEST_NUMBER: Final = 18  # digits of a number in an id; what is longer was not given by us
"""The id of events told from the log: whoever resumes after it gets the whole answer anew, never a part twice."""


@dataclass(frozen=True, slots=True)
class Place:
    """The turn to follow: `since` is the number of its message in the log."""

    session: UUID
    turn: UUID
    attempt: int
    since: int


async def stream(scope: Scope, place: Place, last_id: str) -> AsyncGenerator[bytes]:
    """The turn as server-sent events, resumed after `last_id` ("" from the start).

    Ends with `done` or `error`, or with `reconnect` when this process leaves. A comment keeps the connection
    open while nothing is said.
    """
    threads.rest()
    source = _from_memory(place, last_id) or _from_elsewhere(scope, place, last_id)
    upcoming = asyncio.create_task(anext(source, None))
    leaving = asyncio.create_task(live.until_leaving())
    try:
        while True:
            done, _ = await asyncio.wait(
                {upcoming, leaving}, timeout=COMMENT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if upcoming in done:
                event = upcoming.result()
                if event is None:
                    return
                yield event
                upcoming = asyncio.create_task(anext(source, None))
            elif leaving in done:
                yield sse.encode("reconnect", {"after_ms": 1000})
                return
            else:
                yield sse.comment()
    finally:
        upcoming.cancel()
        leaving.cancel()
        await asyncio.gather(upcoming, leaving, return_exceptions=True)
        await source.aclose()


def _from_memory(place: Place, last_id: str) -> AsyncGenerator[bytes] | None:
    feed = live.feed_of(place.turn, place.attempt)
    return None if feed is None else _encoded(feed, _number(place, last_id))


def _number(place: Place, last_id: str) -> int:
    """The number in an id of this attempt's feed; 0 for ids of anything else."""
    attempt, _, number = last_id.partition("-")
    given = attempt == str(place.attempt) and number.isdecimal() and len(number) <= LONGEST_NUMBER
    return int(number) if given else 0


async def _encoded(feed: live.Feed, after: int) -> AsyncGenerator[bytes]:
    async for said in feed.follow(after):
        yield sse.framed(said.name, said.body, f"{feed.attempt}-{said.number}")
        if said.name in LAST:
            return


# --- a turn that runs elsewhere, or ran before this process started --------------------------------------


async def _from_elsewhere(scope: Scope, place: Place, last_id: str) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(_from_relay(scope, place, _number(place, last_id))) as relayed:
            async for event in relayed:
                yield event
    except relay.Unavailable:
        async for event in _from_log(scope, place):
            yield event


async def _from_relay(scope: Scope, place: Place, after: int) -> AsyncGenerator[bytes]:
    """As `_encoded`, through Redis. While nothing is said, whether the turn still runs is asked of the log."""
    async with aclosing(relay.follow(scope, place.turn, place.attempt, after)) as relayed:
        async for said in relayed:
            if said is not None:
                yield sse.framed(said.name, said.body, f"{place.attempt}-{said.number}")
                if said.name in LAST:
                    return
            elif (end := (await unit(scope, _look, place)).end) is not None:
                yield sse.encode(*end, FROM_LOG)
                return


async def _from_log(scope: Scope, place: Place) -> AsyncGenerator[bytes]:
    """Whatever is saved so far as one `turn` event, which replaces what the reader has, then the growth."""
    shown: tuple[str, str] | None = None
    while True:
        found = await unit(scope, _look, place)
        text, reasoning = found.text, found.reasoning
        if shown is None or not text.startswith(shown[0]) or not reasoning.startswith(shown[1]):
            yield sse.encode("turn", {**_names(place), "text": text, "reasoning": reasoning}, FROM_LOG)
        else:
            for name, now, before in (("reasoning", reasoning, shown[1]), ("text", text, shown[0])):
                if now != before:
                    yield sse.encode(name, {"text": now[len(before) :]}, FROM_LOG)
        shown = (text, reasoning)
        if found.end is not None:
            yield sse.encode(*found.end, FROM_LOG)
            return
        await asyncio.sleep(POLL_SECONDS)


def _names(place: Place) -> dict[str, Any]:
    return {"session": str(place.session), "turn": str(place.turn), "attempt": place.attempt}


@dataclass(frozen=True, slots=True)
class _Seen:
    text: str
    reasoning: str
    end: tuple[str, dict[str, Any]] | None


def _look(place: Place) -> _Seen:
    session = queries.get_session(place.session)
    running = session is not None and queries.running_turn(session) == place.turn
    turns = fold(log.load(place.session, after=place.since - 1))
    turn = next((found for found in turns if found.id == place.turn), None)
    if turn is None:
        return _Seen("", "", None if running else ("error", live.INTERRUPTED))
    return _seen(turn, place.attempt, running)


def _seen(turn: Turn, number: int, running: bool) -> _Seen:
    attempt = turn.attempts.get(number)
    text = attempt.text() if attempt else ""
    reasoning = attempt.reasoning() if attempt else ""
    if attempt and (attempt.answer or attempt.failures):
        return _Seen(text, reasoning, _ending(attempt.answer or attempt.failures[-1]))
    return _Seen(text, reasoning, None if running else ("error", live.INTERRUPTED))


def _ending(event: kinds.Event) -> tuple[str, dict[str, Any]]:
    if event.kind == kinds.ASSISTANT_TURN:
        return "done", {"outcome": event.payload.get("outcome", "complete")}
    return "error", {
        "code": event.payload.get("code", "internal"),
        "message": kinds.text_of(event, "message"),
        "retryable": bool(event.payload.get("retryable")),
    }
