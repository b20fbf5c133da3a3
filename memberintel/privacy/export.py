"""Everything that is a customer's as one archive, sent while it is made.

A thread of its own walks the participants and writes into a pipe that holds a few blocks; whoever sends the blocks
on decides the pace. The thread ends with its reader.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Future
from typing import IO, Any, Final, cast
from uuid import UUID

from django.apps import apps
from django.db import connections

from memberintel.lib import clock
from memberintel.privacy import audit, participants, rows
from memberintel.privacy.archive import Archive
from memberintel.tenancy.context import Scope, current_scope, scope
from memberintel.vault import keyring

AT_ONCE: Final = 4  # in one process
BLOCKS: Final = 16  # of 64 KiB at most
PATIENCE_SECONDS: Final = 300.0  # for a reader that takes nothing

logger = logging.getLogger(__name__)
_threads: set[threading.Thread] = set()


class Busy(Exception):
    """As many exports as this process makes at once are being made; try again in a minute."""


class Gone(Exception):
    """Nobody reads the archive any more."""


def write(out: IO[bytes]) -> Mapping[str, int]:
    """Write the archive of the customer of the current scope; counts of rows by table. CannotOpen without their key."""
    who = current_scope()
    keyring.customer_key()
    archive = Archive(
        out,
        {"made_at": clock.now().isoformat(), "customer": str(who.customer_id), "tenant": str(who.tenant_id)},
    )
    try:
        _fill(archive)
    except BaseException:
        archive.abandon()
        raise
    return archive.counts


def _fill(archive: Archive) -> None:
    left_out, hidden = participants.left_out(), participants.hidden()
    for table, model in rows.private_tables().items():
        if table not in left_out:
            archive.table(model, hidden.get(table, ()))
    for theirs in apps.get_models():
        if theirs._meta.db_table in participants.shared():
            archive.table(theirs, hidden.get(theirs._meta.db_table, ()))
    for export in participants.taking_part("export"):
        export(archive)
    archive.text("README.md", [ABOUT])
    archive.close()


def begin(*, by: UUID) -> None:
    """Keep that the customer of the current scope took a copy; before it is made. CannotOpen without their key."""
    who = current_scope()
    keyring.customer_key()
    audit.record("exported", actor=by, subject=who.customer_id, tenant=who.tenant_id)


def stream(who: Scope) -> AsyncGenerator[bytes]:
    """The archive in blocks. Busy at once when this process makes enough of them already.

    What breaks while it is made breaks the stream, so that a part is never taken for the whole.
    """
    if len(_threads) >= AT_ONCE:
        raise Busy("too many exports are being made at once")
    return _streamed(who)


async def _streamed(who: Scope) -> AsyncGenerator[bytes]:
    pipe = _Pipe(asyncio.get_running_loop())
    ended: Future[None] = Future()
    thread = threading.Thread(
        # An empty context: the scope of whoever asks must not be inherited by accident.
        target=contextvars.Context().run,
        args=(_work, who, pipe, ended),
        name="export",
        daemon=True,
    )
    _threads.add(thread)
    try:
        thread.start()
        async for block in pipe.blocks():
            yield block
        await asyncio.wrap_future(ended)
    finally:
        pipe.leave()


def _work(who: Scope, pipe: _Pipe, ended: Future[None]) -> None:
    try:
        with scope(who):
            write(cast("IO[bytes]", pipe))
    except Gone:
        logger.info("an export was left before its end")
        ended.set_result(None)
    except Exception as error:
        # The type alone: an exception's text may quote what a person wrote.
        logger.error("an export broke: %s", type(error).__name__)
        ended.set_exception(error)
    else:
        ended.set_result(None)
    finally:
        pipe.end()
        connections.close_all()
        _threads.discard(threading.current_thread())


class _Pipe:
    """Blocks from a thread to the event loop; the writer waits while `BLOCKS` have not been taken."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._held = loop, deque[bytes]()
        self._changed, self._news = threading.Condition(), asyncio.Event()
        self._over = self._left = False

    def write(self, data: Any) -> int:
        """Hand on a block; Gone when nobody reads."""
        with self._changed:
            if len(self._held) >= BLOCKS:
                connections.close_all()  # whoever waits for a slow reader holds none meanwhile
            while len(self._held) >= BLOCKS and not self._left:
                if not self._changed.wait(PATIENCE_SECONDS):
                    self._left = True
            if self._left:
                raise Gone
            self._held.append(bytes(data))
        self._tell()
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def end(self) -> None:
        """There is no more to come."""
        with self._changed:
            self._over = True
        self._tell()

    def leave(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self._left = True
            self._held.clear()
            self._changed.notify_all()

    def _tell(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def blocks(self) -> AsyncGenerator[bytes]:
        """The blocks as they come."""
        while True:
            with self._changed:
                block, over = b"".join(self._held), self._over
                self._held.clear()
                self._changed.notify_all()
            if block:
                yield block
            elif over:
                return
            else:
                await self._news.wait()
                self._news.clear()


ABOUT: Final = """# Your copy of everything

* `sessions/`, `brain/`, `wrap-ups.md`, `journal.md`: what was said and noted, to read.
* `data/`: the same, complete, for programs: one JSON object a line, one file for each kind of thing.
* `manifest.json`: when it was made, how much there is of what, and what could not be opened.

The form is `memberintel-export/1`. It can be read back into an empty account.
"""
