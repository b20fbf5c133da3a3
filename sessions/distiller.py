"""What the tools of a turn found, in a few lines a later turn still sees. Without it nothing is the worse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings

from memberintel.llm import seam
from memberintel.llm.errors import ModelError
from memberintel.llm.types import Message, Prompt
from memberintel.tenancy.context import Scope
from sessions.domain import turn_memory
from sessions.domain.events import ToolTraffic

logger = logging.getLogger(__name__)

VERSION: Final = "distill-1"  # a changed text is a new file and a new name


async def findings(
    scope: Scope, session: UUID, turn: UUID, *, asked: str, tools: Sequence[ToolTraffic], answer: str
) -> tuple[str, ...]:
    """What is worth keeping, at most five lines; () when no tool brought anything, or no model could say."""
    material = turn_memory.material(asked, tools, answer)
    if not material:
        return ()
    prompt = Prompt((_instructions(),), (Message("user", material),))
    try:
        async with asyncio.timeout(settings.TURN_DEADLINES["distill"]):
            said = await seam.complete("distill", prompt, scope=scope, session=session, turn=turn)
    except (ModelError, TimeoutError) as error:
        logger.warning("a turn is kept without findings: %s", type(error).__name__)
        return ()
    return turn_memory.findings(said.text)


@cache
def _instructions() -> str:
    return (Path(__file__).parent / "prompts" / f"{VERSION}.txt").read_text().strip()
