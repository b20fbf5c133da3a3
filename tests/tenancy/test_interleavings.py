"""However threads and asyncio tasks interleave their scopes, nobody ever reads a row of somebody else."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from django.db import ProgrammingError, connection, connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memberintel.tenancy.context import Scope, scope, scope_or_none
from memberintel.tenancy.unit import unit
from tests.tenancy.conftest import Cast
from tests.tenancy.trial import READ, read
from tests.waiting import PATIENCE

type Step = Literal["alone", "together", "inner", "nobody", "failing"]
STEPS: tuple[Step, ...] = ("alone", "together", "inner", "nobody", "failing")
who = st.integers(0, 2)
steps = st.lists(st.tuples(st.sampled_from(STEPS), who, who), min_size=1, max_size=5)
PROGRAMS = st.tuples(st.lists(steps, min_size=2, max_size=4), st.lists(st.lists(who, max_size=4), max_size=4))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=PROGRAMS)
def test_nobody_reads_anybody_elses_rows(
    cast: Cast, programs: tuple[list[list[tuple[Step, int, int]]], list[list[int]]]
) -> None:
    people = [person.scope for person in (cast.alice, cast.bob, cast.charlie)]
    in_threads, in_tasks = programs
    start = threading.Barrier(len(in_threads) + 1)

    def thread(program: list[tuple[Step, int, int]]) -> None:
        start.wait(PATIENCE)
        try:
            for step, first, second in program:
                take(step, people[first], people[second])
        finally:
            connections.close_all()

    async def task(program: list[int]) -> None:
        for number in program:
            with scope(people[(number + 1) % 3]):
                assert await unit(people[number], read) == own(people[number])
                assert scope_or_none() == people[(number + 1) % 3]

    async def tasks() -> None:
        await asyncio.to_thread(start.wait, PATIENCE)
        await asyncio.gather(*map(task, in_tasks))

    with ThreadPoolExecutor(len(in_threads)) as threads:
        running = [threads.submit(thread, program) for program in in_threads]
        asyncio.run(tasks())
        for done in running:
            done.result()


def take(step: Step, first: Scope, second: Scope) -> None:
    """One step of a thread's program; fails when it reads anything but its own."""
    match step:
        case "alone":
            with scope(first):
                assert read() == own(first)
        case "together":
            with scope(first), transaction.atomic():
                assert read() == own(first)
                assert read() == own(first)
        case "inner":
            with scope(first):
                with scope(second):
                    assert read() == own(second)
                assert read() == own(first)
        case "nobody":
            refused()
        case "failing":
            try:
                with scope(first), transaction.atomic():
                    read()
                    raise ZeroDivisionError
            except ZeroDivisionError:
                refused()
    assert scope_or_none() is None


def refused() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(READ)
    except ProgrammingError as error:
        assert "permission denied" in str(error)  # noqa: PT017  (either way is a verdict)
    else:
        raise AssertionError("a statement without a scope was answered")


def own(who: Scope) -> list[tuple[str, str, int]]:
    return [(str(who.tenant_id), str(who.customer_id), 1)]
