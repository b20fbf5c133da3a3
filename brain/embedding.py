"""Vectors of texts for the brain: asked for outside of any transaction, and done without while there are none."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final
from uuid import UUID

from django.conf import settings

from brain.domain.memory import Thresholds, Vector
from memberintel.llm import seam
from memberintel.llm.errors import ModelError
from memberintel.tenancy.context import Scope

logger = logging.getLogger(__name__)

LONGEST_ASKED: Final = 8_000  # characters of a message: providers read about 2,000 tokens
_KEPT: Final = 256
_KEPT_SECONDS: Final = 60.0

# Every section of a message's recall asks for the same text, at the same time: the provider is asked, and paid, once.
type _Key = tuple[UUID, UUID | None, bytes]
_recent: OrderedDict[_Key, tuple[float, Vector]] = OrderedDict()
_asked: dict[tuple[asyncio.AbstractEventLoop, _Key], asyncio.Task[Vector | None]] = {}
_lock = Lock()


def nearness() -> Thresholds:
    """From which cosine on something is recalled for a message."""
    return Thresholds(**settings.RECALL_THRESHOLDS)


def likeness() -> Thresholds:
    """From which cosine on two entries may say the same."""
    return Thresholds(**settings.SIMILAR_THRESHOLDS)


async def vector(text: str, who: Scope) -> Vector | None:
    """The vector of one text; None where no embedder answers, which the ledger and the log say."""
    key = (who.tenant_id, who.customer_id, hashlib.sha256(text.encode()).digest())
    with _lock:
        found = _recent.get(key)
    if found and time.monotonic() - found[0] < _KEPT_SECONDS:
        return found[1]
    loop = asyncio.get_running_loop()
    task = _asked.get((loop, key))
    if task is None:
        task = _asked[loop, key] = loop.create_task(_ask(text, who, key))
        task.add_done_callback(lambda _: _asked.pop((loop, key), None))
    return await asyncio.shield(task)  # another may wait for it too


async def _ask(text: str, who: Scope, key: _Key) -> Vector | None:
    made = await vectors([text], who)
    if made is None:
        return None
    with _lock:
        _recent[key] = (time.monotonic(), made[0])
        while len(_recent) > _KEPT:
            _recent.popitem(last=False)
    return made[0]


async def vectors(texts: Sequence[str], who: Scope) -> list[Vector] | None:
    """The vectors of several texts, in order; None where no embedder answers."""
    try:
        found = await seam.embed([text[:LONGEST_ASKED] for text in texts], scope=who)
    except ModelError as error:
        logger.warning("no embedder answers (%s): texts are compared by their words meanwhile", error.code)
        return None
    embedder = f"{found.provider}:{found.model}"
    return [Vector(values, embedder) for values in found.vectors]
