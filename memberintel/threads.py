"""The thread in which the synchronous part of a request runs.

Django's middleware and views run in a thread that is the request's own. Here such threads outlive the request, since
starting and ending one costs more than a small page; and a request that goes on to stream for minutes gives its
thread back meanwhile, since an idle thread costs more memory than a stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from asgiref.sync import ThreadSensitiveContext
from django.http import HttpRequest
from django.http.response import HttpResponseBase

KEPT: Final = 16
"""Idle threads kept for the next requests."""

_idle: list[ThreadPoolExecutor] = []


class _Own(Executor):
    """One thread, from when there is work for it until `rest`; then perhaps another."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    def submit[**P, R](self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run it on the request's thread, after what was given to it before."""
        if self._thread is None:
            self._thread = _idle.pop() if _idle else ThreadPoolExecutor(1, thread_name_prefix="request")
        return self._thread.submit(fn, *args, **kwargs)

    def rest(self) -> None:
        """Let others have the thread."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if len(_idle) < KEPT:
            _idle.append(thread)
        else:
            thread.shutdown(wait=False)


_own: ContextVar[_Own] = ContextVar("request_thread")


@asynccontextmanager
async def own_thread() -> AsyncGenerator[None]:
    """Within it, synchronous code that Django takes from the event loop runs on one thread."""
    own = _Own()
    token = _own.set(own)
    try:
        async with ThreadSensitiveContext(executor=own):
            yield
    finally:
        _own.reset(token)
        own.rest()


def rest() -> None:
    """For a request that streams from the event loop from now on: its thread serves others meanwhile.

    Only when its synchronous part is over and has given its database connection back.
    """
    if (own := _own.get(None)) is not None:
        own.rest()


class InOneGo:
    """The innermost middleware. It knows synchronous code alone, so that Django runs those around it as one piece on
    the request's thread; else each of them would go there and back by itself, twice."""

    sync_capable, async_capable = True, False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """What the view answers."""
        return self._next(request)
