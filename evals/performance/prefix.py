"""How much of a long conversation's requests a provider has seen before."""

from __future__ import annotations

from collections.abc import Iterator

from brain.actions import store_parts
from brain.domain.prompt import RenderedPart
from evals.performance.compaction import BASE
from evals.performance.log import ANSWER, QUESTION, customer
from evals.performance.results import Figure, at_least, plain
from memberintel.lib.ids import uuid7
from memberintel.llm.types import Prompt
from memberintel.tenancy.context import scope
from sessions import actions, log, toolbox
from sessions.domain import events as kinds
from sessions.domain import projection, turn_memory
from sessions.domain.weights import part_weights
from sessions.log import Lease, Turn

TURNS = 200


def figures() -> Iterator[Figure]:
    """First requests of 200 turns with recall and tools: bytes seen before, and tokens that can be cached."""
    who = customer()
    with scope(who):
        whole = reused = tokens = cacheable = 0
        before, counted = b"", 0
        for request in _requests():
            wire, estimate = request.wire(), request.estimate()
            whole += len(before)
            reused += len(before) if wire.startswith(before) else 0
            tokens, cacheable = tokens + estimate, cacheable + (counted if wire.startswith(before) else 0)
            before, counted = wire, estimate
    yield plain("tokens of the first request of turn 200", counted, "tokens")
    yield at_least(
        "reused of the previous turn's first request, over 200 turns", 100 * reused / whole, 100, "%"
    )
    yield at_least(
        "input tokens a provider can take from its cache, over 200 turns", 100 * cacheable / tokens, 95, "%"
    )


def _requests() -> Iterator[Prompt]:
    """The first request of each turn, from a log as turns write it."""
    session = actions.open_session(close_previous=True)
    digest = store_parts([RenderedPart("base", BASE, "bench", None)])[0]
    sections = part_weights([("base", digest, BASE)])
    memory = turn_memory.TurnMemory(key_findings=("Forty members, eleven of them left in May.",))
    for number in range(TURNS):
        turn = Turn(uuid7(), 1, "bench")
        log.append(
            session, kinds.user_message(text=f"{number}. {QUESTION}", tokens=50), turn=turn, lease=Lease.TAKE
        )
        told = (
            kinds.recall(sections=sections[:1] if number % 5 == 0 else [])
            if number
            else kinds.context_frozen(sections=sections, tools=toolbox.definitions(off_record=False))
        )
        log.append(session, told, turn=turn, lease=Lease.HOLD)
        yield projection.provider_prompt(log.load_live(session))
        answer = kinds.assistant_turn(
            text=f"{number}. {ANSWER}",
            memory=memory.content() if number % 3 == 0 else None,
            tokens=220,
            model="bench",
            provider="bench",
        )
        log.append(session, answer, turn=turn, lease=Lease.RELEASE)
