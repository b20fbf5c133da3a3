"""A tool that takes as long as it is told."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, Field

from brain.domain.tools import AdvisorTool, ToolContext


class Wait(BaseModel):
    """How long."""

    seconds: float = Field(ge=0, le=100)


async def _wait(context: ToolContext, given: Wait) -> str:
    await asyncio.sleep(given.seconds)
    return f"waited {given.seconds:g} seconds"


wait = AdvisorTool("wait", "Waits for a while.", Wait, _wait)
