"""Short pieces of database work for asyncio code.

A coroutine that lives for minutes must not hold a connection: each piece runs in a small thread pool, in its
scope and transaction, and gives its connection back. The pool of threads is no larger than that of
connections, so nobody waits for a connection while holding a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from django.conf import settings
from django.db import connections, transaction

from memberintel.tenancy.context import Scope, scope


@cache
def _threads() -> ThreadPoolExecutor:
    size = max(1, (settings.DATABASE_POOL or 4) - 2)  # two are left for requests that come meanwhile
    return ThreadPoolExecutor(max_workers=size, thread_name_prefix="unit")


def give_back() -> None:
    """Give the connections of this thread back to the pool; the next statement takes one again.

    For requests that go on to wait for something: a unit, a stream. Holding one while waiting for another is
    how a pool comes to a standstill.
    """
    connections.close_all()


async def unit[**P, R](who: Scope, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `work` in `who`'s scope and one transaction, off the event loop; its result or its exception.

    A cancelled caller does not stop a piece that has begun: it commits or rolls back as a whole.
    """

    def piece() -> R:
        try:
            with scope(who), transaction.atomic():
                return work(*args, **kwargs)
        finally:
            connections.close_all()

    loop = asyncio.get_running_loop()
    # An empty context: whatever scope the caller stands in must not be inherited by accident.
    return await loop.run_in_executor(_threads(), contextvars.Context().run, piece)
